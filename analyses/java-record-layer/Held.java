// All that holds, one after another on one cluster.

class Held extends Base {
    public static void main(String[] args) {
        main(() -> Records.check().thenCompose(ignored -> Builder.check()).thenCompose(ignored -> Names.check())
                .thenCompose(ignored -> Walk.check()));
    }
}
