// A client starts a synchronized session, does its work and ends it. Nobody else is there.

import com.apple.foundationdb.Transaction;
import com.apple.foundationdb.async.AsyncUtil;
import com.apple.foundationdb.record.provider.foundationdb.FDBDatabaseRunner;
import com.apple.foundationdb.record.provider.foundationdb.synchronizedsession.SynchronizedSessionRunner;
import com.apple.foundationdb.subspace.Subspace;
import com.apple.foundationdb.synchronizedsession.SynchronizedSession;
import com.apple.foundationdb.tuple.Tuple;

import java.util.UUID;
import java.util.concurrent.CompletableFuture;

class Session extends Base {
    static final Subspace lock = new Subspace(Tuple.from("lock"));
    static final long LEASE = 60_000;

    /** With the argument "mended", a session that holds the lock already has been started. */
    public static void main(String[] args) {
        boolean mended = args.length > 0;
        main(() -> times(10, i -> {
            FDBDatabaseRunner runner = database.newRunner();
            return (mended ? mended(runner) : runner.startSynchronizedSessionAsync(lock, LEASE)).handle((session, error) -> {
                if (error == null) {
                    return session.runAsync(context -> AsyncUtil.DONE).thenCompose(done -> session.endSessionAsync());
                }
                String first = cause(error).getMessage();
                return runner.startSynchronizedSessionAsync(lock, LEASE).handle((again, second) -> {
                    throw new Broken("session " + i + ": " + first + "; another one: " + (second == null ? "starts" : cause(second).getMessage()));
                }).thenApply(nothing -> (Void)null);
            }).thenCompose(done -> done).whenComplete((done, error) -> runner.close());
        }));
    }

    private static CompletableFuture<SynchronizedSessionRunner> mended(FDBDatabaseRunner runner) {
        UUID id = UUID.randomUUID();
        SynchronizedSession session = new SynchronizedSession(lock, id, LEASE) {
            @Override
            public CompletableFuture<Void> initializeSessionAsync(Transaction transaction) {
                return checkLockAsync(transaction).handle((held, error) -> error == null).thenCompose(
                        held -> held ? AsyncUtil.DONE : super.initializeSessionAsync(transaction));
            }
        };
        return runner.runAsync(context -> session.initializeSessionAsync(context.ensureActive()))
                .thenApply(started -> runner.joinSynchronizedSession(lock, id, LEASE));
    }
}
