// An online indexer builds all indexes while clients write: in the end each index is readable and right.

import com.apple.foundationdb.async.AsyncUtil;
import com.apple.foundationdb.record.RecordMetaData;
import com.apple.foundationdb.record.metadata.Index;
import com.apple.foundationdb.record.provider.foundationdb.FDBRecordStore;
import com.apple.foundationdb.record.provider.foundationdb.OnlineIndexer;
import com.apple.foundationdb.tuple.Tuple;
import com.google.protobuf.Message;

import java.util.List;
import java.util.concurrent.CompletableFuture;

class Builder extends Base {
    static final int ACCOUNTS = 24;
    static final RecordMetaData before = metaData(false);
    static final RecordMetaData after = metaData(true);

    public static void main(String[] args) {
        main(Builder::check);
    }

    static CompletableFuture<Void> check() {
        return run(context -> {
            context.ensureActive().clear(subspace.range());
            return open(before, context).thenCompose(store -> times(ACCOUNTS, i -> store.saveRecordAsync(
                    account(i, i % 3, 10 * i, 0, "mail " + i, note())).thenAccept(saved -> { })));
        }).thenCompose(ignored -> run(context -> open(after, context).thenCompose(Builder::disable)))
                .thenCompose(ignored -> AsyncUtil.whenAll(List.of(build(), clients(3, 4, client -> write()))))
                .thenCompose(ignored -> run(context -> open(after, context).thenAccept(store -> {
                    for (Index index : after.getAllIndexes()) {
                        claim(store.isIndexReadable(index), () -> "index " + index.getName() + " is built, and not readable");
                    }
                })))
                .thenCompose(ignored -> audit(after)).thenAccept(accounts -> { });
    }

    /** As if the records were too many for a transaction: by default, those of fewer than 200 are indexed at once. */
    private static CompletableFuture<Void> disable(FDBRecordStore store) {
        List<Index> indexes = after.getAllIndexes();
        return times(indexes.size(), i -> store.markIndexDisabled(indexes.get(i)).thenAccept(changed -> { }));
    }

    private static CompletableFuture<Void> build() {
        if (broken.equals("build")) {
            return run(context -> open(after, context).thenCompose(store -> times(after.getAllIndexes().size(),
                    i -> store.uncheckedMarkIndexReadable(after.getAllIndexes().get(i).getName()).thenAccept(changed -> { }))));
        }
        OnlineIndexer indexer = OnlineIndexer.newBuilder().setDatabase(database).setRecordStoreBuilder(store(after))
                .setTargetIndexes(after.getAllIndexes()).setLimit(5).setMaxAttempts(Integer.MAX_VALUE).setMaxRetries(Integer.MAX_VALUE).build();
        return indexer.buildIndexAsync().whenComplete((built, error) -> indexer.close());
    }

    private static CompletableFuture<Void> write() {
        long id = random.nextInt(ACCOUNTS);
        long other = ACCOUNTS + random.nextInt(ACCOUNTS);
        int kind = random.nextInt(3);
        String note = note();
        return run(context -> open(after, context).thenCompose(store -> load(store, id).thenCompose(found -> {
            Message old = found == null ? account(id, id % 3, 5, 0, "mail " + id, note) : found;
            switch (kind) {
                case 0:
                    return store.deleteRecordAsync(Tuple.from(id)).thenApply(deleted -> (Void)null);
                case 1:
                    return store.saveRecordAsync(account(other, other % 3, other, 0, "mail " + other, note)).thenApply(saved -> (Void)null);
                default:
                    return store.saveRecordAsync(with(old, "amount", number(old, "amount") + 7, "group", (number(old, "group") + 1) % 3,
                            "moves", number(old, "moves") + 1, "note", note)).thenApply(saved -> (Void)null);
            }
        })));
    }
}
