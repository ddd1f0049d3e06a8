// Clients resolve names at the same time: a name has one number and a number one name, whoever asks and whenever.

import com.apple.foundationdb.async.AsyncUtil;
import com.apple.foundationdb.record.provider.foundationdb.FDBStoreTimer;
import com.apple.foundationdb.record.provider.foundationdb.keyspace.LocatableResolver;
import com.apple.foundationdb.record.provider.foundationdb.keyspace.ScopedDirectoryLayer;
import com.apple.foundationdb.record.provider.foundationdb.layers.interning.ScopedInterningLayer;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;

class Names extends Base {
    public static void main(String[] args) {
        main(Names::check);
    }

    static CompletableFuture<Void> check() {
        List<LocatableResolver> resolvers = List.of(ScopedInterningLayer.global(database), ScopedDirectoryLayer.global(database));
        return times(resolvers.size(), i -> check(resolvers.get(i)));
    }

    private static CompletableFuture<Void> check(LocatableResolver resolver) {
        Map<String, Long> numbers = new TreeMap<>();
        return clients(4, 4, client -> {
            String name = "name " + random.nextInt(8);
            // A client of another process has nothing cached.
            if (random.nextBoolean()) {
                database.clearCaches();
            }
            return resolver.resolve(name).thenAccept(number -> {
                Long earlier = numbers.putIfAbsent(name, number);
                claim(earlier == null || earlier.equals(number), () -> name + " is " + earlier + ", and then " + number);
            });
        }).thenCompose(ignored -> {
            claim(numbers.values().stream().distinct().count() == numbers.size(), () -> "two names have one number: " + numbers);
            database.clearCaches();
            return !broken.equals("names") ? AsyncUtil.DONE : resolver.getMappingSubspaceAsync().thenCompose(mapping -> run(context -> {
                context.ensureActive().clear(mapping.range());
                return AsyncUtil.DONE;
            }));
        }).thenCompose(ignored -> {
            List<String> names = List.copyOf(numbers.keySet());
            return times(names.size(), i -> resolver.resolve(names.get(i)).thenCompose(number -> {
                claim(number.equals(numbers.get(names.get(i))), () -> names.get(i) + " was " + numbers.get(names.get(i)) + ", and is " + number);
                return resolver.reverseLookup((FDBStoreTimer)null, number);
            }).thenAccept(name -> claim(name.equals(names.get(i)), () -> names.get(i) + " has the number of " + name)));
        });
    }
}
