// Iterations that span transactions: each visits every record once, and says so.

import com.apple.foundationdb.record.ExecuteProperties;
import com.apple.foundationdb.record.RecordCursor;
import com.apple.foundationdb.record.RecordMetaData;
import com.apple.foundationdb.record.ScanProperties;
import com.apple.foundationdb.record.cursors.AutoContinuingCursor;
import com.apple.foundationdb.record.cursors.LazyCursor;
import com.apple.foundationdb.record.provider.foundationdb.FDBDatabaseRunner;
import com.apple.foundationdb.record.provider.foundationdb.FDBStoredRecord;
import com.apple.foundationdb.record.provider.foundationdb.runners.throttled.ThrottledRetryingIterator;
import com.google.protobuf.Message;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

class Walk extends Base {
    static final int ACCOUNTS = 20;
    static final RecordMetaData metaData = metaData(false);

    public static void main(String[] args) {
        main(Walk::check);
    }

    static CompletableFuture<Void> fill() {
        return run(context -> {
            context.ensureActive().clear(subspace.range());
            return open(metaData, context).thenCompose(store -> times(ACCOUNTS, i -> store.saveRecordAsync(
                    account(i, 0, 0, 0, "mail " + i, "oak")).thenAccept(saved -> { })));
        });
    }

    static CompletableFuture<Void> check() {
        return fill().thenCompose(ignored -> move()).thenCompose(ignored -> run(context -> open(metaData, context)
                .thenCompose(store -> store.scanRecords(null, ScanProperties.FORWARD_SCAN).asList())))
                .thenAccept(records -> {
                    List<Long> left = records.stream().map(FDBStoredRecord::getRecord)
                            .filter(account -> number(account, "group") != 1).map(account -> number(account, "id"))
                            .collect(Collectors.toList());
                    claim(left.isEmpty(), () -> "the iterator has ended, and has not moved accounts " + left);
                }).thenCompose(ignored -> read());
    }

    /** Moves all accounts to another group with an iterator that retries, and starts a transaction after three. */
    private static CompletableFuture<Void> move() {
        AtomicReference<byte[]> seen = new AtomicReference<>();
        ThrottledRetryingIterator<FDBStoredRecord<Message>> iterator = ThrottledRetryingIterator.<FDBStoredRecord<Message>>builder(database,
                (store, last, limit) -> store.scanRecords(
                        broken.equals("walk") ? seen.get() : last == null ? null : last.getContinuation().toBytes(),
                        ExecuteProperties.newBuilder().setReturnedRowLimit(limit).build().asScanProperties(false)),
                (store, result, quota) -> {
                    quota.deleteCountInc();
                    seen.set(result.getContinuation().toBytes());
                    return store.saveRecordAsync(with(result.get().getRecord(), "group", 1L)).thenAccept(saved -> { });
                }).withMaxRecordsDeletesPerTransaction(3).withNumOfRetries(Integer.MAX_VALUE).withCommitWhenDone(true).build();
        return iterator.iterateAll(store(metaData)).whenComplete((done, error) -> {
            try {
                iterator.close();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
    }

    /** Reads all accounts with a cursor that continues in another transaction after three, and after an error. */
    static CompletableFuture<Void> read() {
        FDBDatabaseRunner runner = database.newRunner();
        RecordCursor<FDBStoredRecord<Message>> cursor = new AutoContinuingCursor<>(runner, (context, continuation) ->
                new LazyCursor<>(store(metaData).setContext(context).openAsync().thenApply(store -> store.scanRecords(continuation,
                        ExecuteProperties.newBuilder().setReturnedRowLimit(3).build().asScanProperties(false))), context.getExecutor()),
                Integer.MAX_VALUE);
        return cursor.asList().handle((records, error) -> {
            cursor.close();
            runner.close();
            if (error != null) {
                throw new CompletionException(cause(error));
            }
            List<Long> ids = records.stream().map(record -> number(record.getRecord(), "id")).collect(Collectors.toList());
            List<Long> expected = LongStream.range(0, ACCOUNTS).boxed().collect(Collectors.toList());
            claim(ids.equals(expected), () -> "the cursor has read accounts " + ids);
            return null;
        });
    }
}
