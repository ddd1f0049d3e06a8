// What the programs have in common: the database on one thread, the records and their indexes, and what must hold.

import com.apple.foundationdb.FDB;
import com.apple.foundationdb.FDBException;
import com.apple.foundationdb.Transaction;
import com.apple.foundationdb.async.AsyncUtil;
import com.apple.foundationdb.record.IndexEntry;
import com.apple.foundationdb.record.IndexScanType;
import com.apple.foundationdb.record.RecordMetaData;
import com.apple.foundationdb.record.RecordMetaDataBuilder;
import com.apple.foundationdb.record.ScanProperties;
import com.apple.foundationdb.record.TupleRange;
import com.apple.foundationdb.record.metadata.Index;
import com.apple.foundationdb.record.metadata.IndexOptions;
import com.apple.foundationdb.record.metadata.IndexTypes;
import com.apple.foundationdb.record.metadata.expressions.EmptyKeyExpression;
import com.apple.foundationdb.record.metadata.expressions.GroupingKeyExpression;
import com.apple.foundationdb.record.metadata.expressions.VersionKeyExpression;
import com.apple.foundationdb.record.provider.foundationdb.APIVersion;
import com.apple.foundationdb.record.provider.foundationdb.FDBDatabase;
import com.apple.foundationdb.record.provider.foundationdb.FDBDatabaseFactory;
import com.apple.foundationdb.record.provider.foundationdb.FDBDatabaseRunner;
import com.apple.foundationdb.record.provider.foundationdb.FDBIndexableRecord;
import com.apple.foundationdb.record.provider.foundationdb.FDBRecordContext;
import com.apple.foundationdb.record.provider.foundationdb.FDBRecordStore;
import com.apple.foundationdb.record.provider.foundationdb.FDBStoredRecord;
import com.apple.foundationdb.record.provider.foundationdb.IndexMaintainer;
import com.apple.foundationdb.record.provider.foundationdb.IndexMaintainerFactory;
import com.apple.foundationdb.record.provider.foundationdb.IndexMaintainerFactoryRegistry;
import com.apple.foundationdb.record.provider.foundationdb.IndexMaintainerFactoryRegistryImpl;
import com.apple.foundationdb.record.provider.foundationdb.IndexMaintainerState;
import com.apple.foundationdb.record.provider.foundationdb.indexes.ValueIndexMaintainer;
import com.apple.foundationdb.record.provider.foundationdb.indexes.ValueIndexMaintainerFactory;
import com.apple.foundationdb.record.query.expressions.Query;
import com.apple.foundationdb.subspace.Subspace;
import com.apple.foundationdb.tuple.Tuple;
import com.google.protobuf.DescriptorProtos.DescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto;
import com.google.protobuf.DescriptorProtos.FieldDescriptorProto.Type;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.DescriptorValidationException;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.protobuf.Message;
import sun.misc.Unsafe;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;

import static com.apple.foundationdb.record.metadata.Key.Expressions.concatenateFields;
import static com.apple.foundationdb.record.metadata.Key.Expressions.field;

class Base {
    static final Random random = new Random(Long.parseLong(System.getenv().getOrDefault("SHAKETABLE_SEED", "0")));
    static final Subspace subspace = new Subspace(Tuple.from("accounts"));
    static FDBDatabase database;
    /** What is broken, to see that the checks can fail. */
    static final String broken = System.getProperty("broken", "");
    private static final CountDownLatch started = new CountDownLatch(1);

    /** A promise that is broken. */
    static class Broken extends RuntimeException {
        Broken(String message) {
            super(message);
        }
    }

    static void claim(boolean holds, Supplier<String> message) {
        if (!holds) {
            throw new Broken(message.get());
        }
    }

    /**
     * Runs a program. All callbacks run on FoundationDB's network thread, the pauses before retries are those of
     * FoundationDB's client, and deadlines never end, so that one thread calls the library. It waits for the main
     * thread to have said what is to be done.
     */
    static void main(Supplier<CompletableFuture<Void>> program) {
        FDBDatabaseFactory factory = FDBDatabaseFactory.instance();
        factory.setAPIVersion(APIVersion.API_VERSION_7_1);
        factory.setMaxAttempts(Integer.MAX_VALUE);
        if (System.getProperty("threads") == null) {
            ExecutorService direct = new Direct();
            factory.setExecutor(direct);
            setDefaultExecutor(direct);
            // The pause is a random part of this: one that is less than a millisecond is none.
            factory.setInitialDelayMillis(1000);
            factory.setScheduledExecutor(new ScheduledThreadPoolExecutor(1) {
                @Override
                public <V> ScheduledFuture<V> schedule(Callable<V> task, long delay, TimeUnit unit) {
                    // Retries wait for a second at most, and for a random time. What waits longer is a deadline.
                    if (unit.toMillis(delay) <= 1000) {
                        pause(database.database().createTransaction(), 4, task);
                    }
                    return null;
                }
            });
        }
        database = factory.getDatabase();
        int code = 0;
        try {
            FDBRecordContext first = database.openContext();
            CompletableFuture<Void> done = first.getReadVersionAsync().handle((version, error) -> {
                first.close();
                return null;
            }).thenCompose(ignored -> program.get());
            started.countDown();
            done.get();
        } catch (Throwable e) {
            Throwable cause = cause(e);
            System.out.println(cause instanceof Broken ? cause.getMessage() : "it ends with " + described(cause));
            if (System.getProperty("trace") != null) {
                e.printStackTrace();
            }
            code = 1;
        }
        System.out.flush();
        System.exit(code);
    }

    /** Does something after some pauses of a transaction that is retried. */
    private static <V> void pause(Transaction transaction, int left, Callable<V> task) {
        transaction.onError(new FDBException("not_committed", 1020)).whenComplete((next, error) -> {
            if (left > 1 && error == null) {
                pause(next, left - 1, task);
                return;
            }
            if (next != null) {
                next.close();
            }
            try {
                task.call();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
    }

    /** Runs what it is given, at once. */
    private static class Direct extends AbstractExecutorService {
        @Override
        public void execute(Runnable task) {
            try {
                started.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            task.run();
        }

        @Override
        public void shutdown() {
        }

        @Override
        public List<Runnable> shutdownNow() {
            return List.of();
        }

        @Override
        public boolean isShutdown() {
            return false;
        }

        @Override
        public boolean isTerminated() {
            return false;
        }

        @Override
        public boolean awaitTermination(long timeout, TimeUnit unit) {
            return false;
        }
    }

    /** The binding, too, has an executor, with threads of its own, and no function that sets another. */
    @SuppressWarnings("deprecation")
    private static void setDefaultExecutor(ExecutorService executor) {
        try {
            Field unsafe = Unsafe.class.getDeclaredField("theUnsafe");
            unsafe.setAccessible(true);
            Field field = FDB.class.getDeclaredField("DEFAULT_EXECUTOR");
            Unsafe memory = (Unsafe)unsafe.get(null);
            memory.ensureClassInitialized(FDB.class);
            memory.putObject(memory.staticFieldBase(field), memory.staticFieldOffset(field), executor);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    static Throwable cause(Throwable e) {
        while ((e instanceof CompletionException || e instanceof ExecutionException) && e.getCause() != null) {
            e = e.getCause();
        }
        return e;
    }

    static String described(Throwable e) {
        return e.getClass().getSimpleName() + ": " + e.getMessage();
    }

    static <T> CompletableFuture<T> run(Function<FDBRecordContext, CompletableFuture<T>> transaction) {
        FDBDatabaseRunner runner = database.newRunner();
        return runner.<T>runAsync(transaction::apply).whenComplete((value, error) -> runner.close());
    }

    /** Does something a number of times, one after another. */
    static CompletableFuture<Void> times(int count, Function<Integer, CompletableFuture<Void>> step) {
        CompletableFuture<Void> done = AsyncUtil.DONE;
        for (int i = 0; i < count; i++) {
            int number = i;
            done = done.thenCompose(ignored -> step.apply(number));
        }
        return done;
    }

    /** Clients that run at the same time, and the operations of each. */
    static CompletableFuture<Void> clients(int clients, int operations, Function<Integer, CompletableFuture<Void>> operation) {
        List<CompletableFuture<Void>> all = new ArrayList<>();
        for (int client = 0; client < clients; client++) {
            int number = client;
            all.add(times(operations, ignored -> operation.apply(number)));
        }
        return AsyncUtil.whenAll(all);
    }

    // The records.

    static final Descriptor ACCOUNT = descriptor().findMessageTypeByName("Account");
    static final String[] WORDS = {"alder", "beech", "cedar", "elm", "fir", "hazel", "larch", "oak", "pine", "yew"};

    private static FileDescriptor descriptor() {
        DescriptorProto.Builder account = DescriptorProto.newBuilder().setName("Account");
        String[] fields = {"id", "group", "amount", "moves", "mail", "note"};
        for (int i = 0; i < fields.length; i++) {
            account.addField(FieldDescriptorProto.newBuilder().setName(fields[i]).setNumber(i + 1)
                    .setLabel(FieldDescriptorProto.Label.LABEL_OPTIONAL).setType(i < 4 ? Type.TYPE_INT64 : Type.TYPE_STRING));
        }
        DescriptorProto.Builder union = DescriptorProto.newBuilder().setName("RecordTypeUnion");
        union.addField(FieldDescriptorProto.newBuilder().setName("_Account").setNumber(1)
                .setLabel(FieldDescriptorProto.Label.LABEL_OPTIONAL).setType(Type.TYPE_MESSAGE).setTypeName("Account"));
        FileDescriptorProto file = FileDescriptorProto.newBuilder().setName("account.proto").setSyntax("proto2")
                .addMessageType(account).addMessageType(union).build();
        try {
            return FileDescriptor.buildFrom(file, new FileDescriptor[0]);
        } catch (DescriptorValidationException e) {
            throw new IllegalStateException(e);
        }
    }

    static Message account(long id, long group, long amount, long moves, String mail, String note) {
        DynamicMessage.Builder builder = DynamicMessage.newBuilder(ACCOUNT);
        Object[] values = {id, group, amount, moves, mail, note};
        for (int i = 0; i < values.length; i++) {
            builder.setField(ACCOUNT.findFieldByNumber(i + 1), values[i]);
        }
        return builder.build();
    }

    static long number(Message account, String name) {
        return (Long)account.getField(ACCOUNT.findFieldByName(name));
    }

    static String text(Message account, String name) {
        return (String)account.getField(ACCOUNT.findFieldByName(name));
    }

    static Message with(Message account, Object... changes) {
        Message.Builder builder = account.toBuilder();
        for (int i = 0; i < changes.length; i += 2) {
            builder.setField(ACCOUNT.findFieldByName((String)changes[i]), changes[i + 1]);
        }
        return builder.build();
    }

    static String note() {
        return WORDS[random.nextInt(WORDS.length)] + " " + WORDS[random.nextInt(WORDS.length)];
    }

    static RecordMetaData metaData(boolean indexes) {
        RecordMetaDataBuilder builder = RecordMetaData.newBuilder().setRecords(ACCOUNT.getFile());
        builder.getRecordType("Account").setPrimaryKey(field("id"));
        builder.setStoreRecordVersions(true);
        if (indexes) {
            builder.addIndex("Account", new Index("amounts", concatenateFields("group", "amount")));
            builder.addIndex("Account", new Index("mails", field("mail"), IndexTypes.VALUE, IndexOptions.UNIQUE_OPTIONS));
            builder.addIndex("Account", new Index("count", new GroupingKeyExpression(field("group"), 0), IndexTypes.COUNT));
            builder.addIndex("Account", new Index("sum", field("amount").groupBy(field("group")), IndexTypes.SUM));
            builder.addIndex("Account", new Index("rank", field("amount").ungrouped(), IndexTypes.RANK));
            builder.addIndex("Account", new Index("versions", VersionKeyExpression.VERSION, IndexTypes.VERSION));
            builder.addIndex("Account", new Index("words", field("note"), IndexTypes.TEXT));
            builder.addIndex("Account", new Index("greatest", concatenateFields("group", "moves", "amount").group(1),
                    IndexTypes.PERMUTED_MAX, Collections.singletonMap(IndexOptions.PERMUTED_SIZE_OPTION, "1")));
        }
        return builder.build();
    }

    static FDBRecordStore.Builder store(RecordMetaData metaData) {
        FDBRecordStore.Builder builder = FDBRecordStore.newBuilder().setMetaDataProvider(metaData).setSubspace(subspace);
        return broken.equals("index") ? builder.setIndexMaintainerRegistry(new Forgetful()) : builder;
    }

    /** Indexes of values that keep what is no longer there. */
    private static class Forgetful implements IndexMaintainerFactoryRegistry {
        private final IndexMaintainerFactoryRegistry all = IndexMaintainerFactoryRegistryImpl.instance();

        @Override
        public IndexMaintainerFactory getIndexMaintainerFactory(Index index) {
            return index.getName().equals("amounts") ? new ValueIndexMaintainerFactory() {
                @Override
                public IndexMaintainer getIndexMaintainer(IndexMaintainerState state) {
                    return new ValueIndexMaintainer(state) {
                        @Override
                        public <M extends Message> CompletableFuture<Void> update(FDBIndexableRecord<M> before, FDBIndexableRecord<M> after) {
                            return after == null ? AsyncUtil.DONE : super.update(null, after);
                        }
                    };
                }
            } : all.getIndexMaintainerFactory(index);
        }
    }

    static CompletableFuture<FDBRecordStore> open(RecordMetaData metaData, FDBRecordContext context) {
        return store(metaData).setContext(context).createOrOpenAsync();
    }

    static CompletableFuture<Message> load(FDBRecordStore store, long id) {
        return store.loadRecordAsync(Tuple.from(id)).thenApply(record -> record == null ? null : record.getRecord());
    }

    // What must hold.

    static CompletableFuture<List<IndexEntry>> entries(FDBRecordStore store, String index, IndexScanType type) {
        return store.scanIndex(store.getRecordMetaData().getIndex(index), type, TupleRange.ALL, null, ScanProperties.FORWARD_SCAN)
                .asList();
    }

    private static <T> CompletableFuture<Void> expected(String index, CompletableFuture<List<IndexEntry>> entries,
                                                       Function<IndexEntry, T> seen, List<T> expected) {
        return entries.thenAccept(list -> {
            List<String> found = list.stream().map(entry -> String.valueOf(seen.apply(entry))).sorted().collect(Collectors.toList());
            List<String> wanted = expected.stream().map(String::valueOf).sorted().collect(Collectors.toList());
            List<String> more = new ArrayList<>(found);
            wanted.forEach(more::remove);
            List<String> less = new ArrayList<>(wanted);
            found.forEach(less::remove);
            claim(more.isEmpty() && less.isEmpty(), () -> "index " + index + " has " + more + ", and has not " + less);
        });
    }

    /** All records, by their ids, after each index was found to say what they say. */
    static CompletableFuture<Map<Long, Message>> audit(RecordMetaData metaData) {
        return run(context -> open(metaData, context).thenCompose(store ->
                store.scanRecords(null, ScanProperties.FORWARD_SCAN).asList().thenCompose(records -> {
                    List<Message> accounts = records.stream().map(FDBStoredRecord::getRecord).collect(Collectors.toList());
                    Map<Long, Long> counts = new TreeMap<>();
                    Map<Long, Long> sums = new TreeMap<>();
                    Map<Tuple, Long> greatest = new HashMap<>();
                    TreeSet<Long> amounts = new TreeSet<>();
                    List<Tuple> words = new ArrayList<>();
                    for (Message account : accounts) {
                        long group = number(account, "group");
                        counts.merge(group, 1L, Long::sum);
                        sums.merge(group, number(account, "amount"), Long::sum);
                        greatest.merge(Tuple.from(group, number(account, "moves")), number(account, "amount"), Math::max);
                        amounts.add(number(account, "amount"));
                        Arrays.stream(text(account, "note").split(" ")).distinct()
                                .forEach(word -> words.add(Tuple.from(word, number(account, "id"))));
                    }
                    List<Tuple> byVersion = records.stream()
                            .map(record -> Tuple.from(record.getVersion().toVersionstamp(), number(record.getRecord(), "id")))
                            .collect(Collectors.toList());
                    CompletableFuture<Void> done = expected("amounts", entries(store, "amounts", IndexScanType.BY_VALUE), IndexEntry::getKey,
                            accounts.stream().map(a -> Tuple.from(number(a, "group"), number(a, "amount"), number(a, "id")))
                                    .collect(Collectors.toList()))
                            .thenCompose(ignored -> expected("mails", entries(store, "mails", IndexScanType.BY_VALUE), IndexEntry::getKey,
                                    accounts.stream().map(a -> Tuple.from(text(a, "mail"), number(a, "id"))).collect(Collectors.toList())))
                            .thenCompose(ignored -> entries(store, "mails", IndexScanType.BY_VALUE)).thenAccept(list -> {
                                long different = list.stream().map(entry -> entry.getKey().getString(0)).distinct().count();
                                claim(different == list.size(), () -> "two accounts have one mail: " + list);
                            })
                            // A group that is empty may have an entry that says so.
                            .thenCompose(ignored -> expected("count", nonzero(entries(store, "count", IndexScanType.BY_GROUP)),
                                    entry -> entry.getKey().getLong(0) + ": " + entry.getValue().getLong(0),
                                    counts.entrySet().stream().map(e -> e.getKey() + ": " + e.getValue()).collect(Collectors.toList())))
                            .thenCompose(ignored -> expected("sum", nonzero(entries(store, "sum", IndexScanType.BY_GROUP)),
                                    entry -> entry.getKey().getLong(0) + ": " + entry.getValue().getLong(0),
                                    sums.entrySet().stream().filter(e -> e.getValue() != 0).map(e -> e.getKey() + ": " + e.getValue())
                                            .collect(Collectors.toList())))
                            .thenCompose(ignored -> expected("rank", entries(store, "rank", IndexScanType.BY_VALUE), IndexEntry::getKey,
                                    accounts.stream().map(a -> Tuple.from(number(a, "amount"), number(a, "id"))).collect(Collectors.toList())))
                            .thenCompose(ignored -> expected("greatest", entries(store, "greatest", IndexScanType.BY_GROUP),
                                    entry -> entry.getKey(),
                                    greatest.entrySet().stream()
                                            .map(e -> Tuple.from(e.getKey().getLong(0), e.getValue(), e.getKey().getLong(1)))
                                            .collect(Collectors.toList())))
                            .thenCompose(ignored -> expected("versions", entries(store, "versions", IndexScanType.BY_VALUE),
                                    IndexEntry::getKey, byVersion))
                            .thenCompose(ignored -> expected("words", words(store), IndexEntry::getKey, words));
                    List<Long> ordered = new ArrayList<>(amounts);
                    for (FDBStoredRecord<Message> record : records) {
                        done = done.thenCompose(ignored -> store.evaluateRecordFunction(Query.rank("amount").getFunction(), record))
                                .thenAccept(rank -> {
                                    long right = ordered.indexOf(number(record.getRecord(), "amount"));
                                    claim(Objects.equals(rank, right), () -> "rank of account " + number(record.getRecord(), "id")
                                            + " is " + rank + ", and should be " + right);
                                });
                    }
                    Map<Long, Message> byId = new TreeMap<>();
                    accounts.forEach(account -> byId.put(number(account, "id"), account));
                    return done.thenApply(ignored -> byId);
                })));
    }

    private static CompletableFuture<List<IndexEntry>> nonzero(CompletableFuture<List<IndexEntry>> entries) {
        return entries.thenApply(list -> list.stream().filter(entry -> entry.getValue().getLong(0) != 0).collect(Collectors.toList()));
    }

    private static CompletableFuture<List<IndexEntry>> words(FDBRecordStore store) {
        List<IndexEntry> all = new ArrayList<>();
        return times(WORDS.length, i -> store.scanIndex(store.getRecordMetaData().getIndex("words"), IndexScanType.BY_TEXT_TOKEN,
                TupleRange.allOf(Tuple.from(WORDS[i])), null, ScanProperties.FORWARD_SCAN).asList().thenAccept(all::addAll))
                .thenApply(ignored -> all);
    }
}
