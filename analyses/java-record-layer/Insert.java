// A client inserts records, which nobody else does.

import com.apple.foundationdb.record.RecordMetaData;

class Insert extends Base {
    public static void main(String[] args) {
        RecordMetaData metaData = metaData(true);
        main(() -> times(10, i -> run(context -> open(metaData, context).thenCompose(store -> store.insertRecordAsync(
                account(i, 0, 0, 0, "mail " + i, "oak")))).handle((saved, error) -> {
            claim(error == null, () -> "insert of account " + i + ", which nobody else inserts: " + cause(error).getMessage());
            return null;
        })));
    }
}
