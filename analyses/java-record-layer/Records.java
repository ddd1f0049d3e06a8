// Clients change accounts at the same time. Each index says what the records say, no change is lost, money is neither
// made nor lost, and a reader that follows the versions sees the last state of each account.

import com.apple.foundationdb.async.AsyncUtil;
import com.apple.foundationdb.async.MoreAsyncUtil;
import com.apple.foundationdb.record.EndpointType;
import com.apple.foundationdb.record.IndexEntry;
import com.apple.foundationdb.record.IndexScanType;
import com.apple.foundationdb.record.RecordMetaData;
import com.apple.foundationdb.record.ScanProperties;
import com.apple.foundationdb.record.TupleRange;
import com.apple.foundationdb.tuple.Tuple;
import com.google.protobuf.Message;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

class Records extends Base {
    static final int ACCOUNTS = 12;
    static final RecordMetaData metaData = metaData(true);
    static final Map<Long, Integer> acknowledged = new TreeMap<>();
    static final Map<Long, Integer> attempts = new TreeMap<>();
    static boolean writing = true;

    public static void main(String[] args) {
        main(Records::check);
    }

    static CompletableFuture<Void> check() {
        return run(context -> open(metaData, context).thenCompose(store -> times(ACCOUNTS, i -> store.saveRecordAsync(
                account(i, i % 3, 100, 0, "mail " + i, note())).thenAccept(saved -> { }))))
                .thenCompose(ignored -> {
                    CompletableFuture<Map<Long, Long>> follower = follow(null, new HashMap<>());
                    return clients(4, 4, client -> operation()).thenCompose(done -> {
                        writing = false;
                        return follower;
                    });
                })
                .thenCompose(followed -> audit(metaData).thenAccept(accounts -> {
                    long sum = accounts.values().stream().mapToLong(account -> number(account, "amount")).sum();
                    claim(sum == 100 * ACCOUNTS, () -> "the accounts have " + sum);
                    accounts.forEach((id, account) -> {
                        long moves = number(account, "moves");
                        claim(moves >= acknowledged.getOrDefault(id, 0),
                                () -> "account " + id + " was moved " + moves + " times, and " + acknowledged.get(id) + " were acknowledged");
                        claim(moves <= attempts.getOrDefault(id, 0),
                                () -> "account " + id + " was moved " + moves + " times, and " + attempts.get(id) + " were attempted");
                        Long seen = followed.get(id);
                        claim(seen != null && seen == moves, () -> "account " + id + " was moved " + moves
                                + " times, and who follows the versions has seen " + seen);
                    });
                }));
    }

    static CompletableFuture<Void> operation() {
        long from = random.nextInt(ACCOUNTS);
        long to = (from + 1 + random.nextInt(ACCOUNTS - 1)) % ACCOUNTS;
        long amount = 1 + random.nextInt(20);
        String note = note();
        boolean exchange = random.nextInt(3) == 0 && !broken.equals("reads");
        Message[] stale = new Message[2];
        CompletableFuture<Void> before = !broken.equals("reads") ? AsyncUtil.DONE : run(context -> open(metaData, context)
                .thenCompose(store -> load(store, from).thenAccept(account -> stale[0] = account)
                        .thenCompose(ignored -> load(store, to)).thenAccept(account -> stale[1] = account)));
        return before.thenCompose(ready -> run(context -> {
            attempts.merge(from, 1, Integer::sum);
            attempts.merge(to, 1, Integer::sum);
            return open(metaData, context).thenCompose(store -> load(store, from).thenCompose(first -> load(store, to).thenCompose(second -> {
                Message source = stale[0] == null ? first : stale[0];
                Message target = stale[1] == null ? second : stale[1];
                Message less = with(source, "amount", number(source, "amount") - amount, "moves", number(source, "moves") + 1, "note", note);
                Message more = with(target, "amount", number(target, "amount") + amount, "moves", number(target, "moves") + 1);
                if (!exchange) {
                    return store.saveRecordAsync(less).thenCompose(ignored -> store.saveRecordAsync(more));
                }
                // The accounts exchange their mail addresses, which are unique, and their groups.
                Message one = with(less, "mail", text(more, "mail"), "group", number(more, "group"));
                Message other = with(more, "mail", text(less, "mail"), "group", number(less, "group"));
                return store.deleteRecordAsync(Tuple.from(to)).thenCompose(ignored -> store.saveRecordAsync(one))
                        .thenCompose(ignored -> store.saveRecordAsync(other));
            }))).thenApply(saved -> (Void)null);
        })).thenAccept(ignored -> {
            acknowledged.merge(from, 1, Integer::sum);
            acknowledged.merge(to, 1, Integer::sum);
        });
    }

    /** Reads what the index of versions has after the last one, until nobody writes. */
    static CompletableFuture<Map<Long, Long>> follow(Tuple last, Map<Long, Long> seen) {
        boolean finalRound = !writing;
        return run(context -> open(metaData, context).thenCompose(store -> store.scanIndex(metaData.getIndex("versions"), IndexScanType.BY_VALUE,
                last == null ? TupleRange.ALL : new TupleRange(last, null, EndpointType.RANGE_EXCLUSIVE,
                        EndpointType.TREE_END), null, ScanProperties.FORWARD_SCAN).asList()
                .thenCompose(entries -> {
                    List<Message> found = new ArrayList<>();
                    return times(entries.size(), i -> load(store, entries.get(i).getKey().getLong(1)).thenAccept(found::add))
                            .thenApply(ignored -> Map.entry(entries, found));
                }))).thenCompose(round -> {
            Tuple next = last;
            for (int i = 0; i < round.getKey().size(); i++) {
                IndexEntry entry = round.getKey().get(i);
                seen.put(entry.getKey().getLong(1), number(round.getValue().get(i), "moves"));
                next = entry.getKey();
            }
            Tuple from = next;
            return finalRound ? CompletableFuture.completedFuture(seen)
                    : MoreAsyncUtil.delayedFuture(500, TimeUnit.MILLISECONDS, database.getScheduledExecutor())
                            .thenCompose(ignored -> follow(from, seen));
        });
    }
}
