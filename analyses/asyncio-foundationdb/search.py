"""pstore: tasks index documents, again and again, and search for them at once."""

from store import chance, claim, found, run, together

from found.ext import pstore

store = pstore.make("documents", ("documents",))
WORDS = "sun moon star tree leaf".split()


async def check(call):
    documents = {}

    def should(keywords):
        hits = {}
        for uid, words in documents.items():
            if all(word in words for word in keywords):
                hits[uid] = sum(words[word] for word in keywords)
        return hits

    async def writer(me):
        for number in range(8):
            uid = me * 100 + chance.randrange(5)
            words = {word: chance.randrange(1, 9) for word in WORDS if chance.random() < 0.5} or {"sun": 1}
            await call(pstore.index, store, uid, words)
            documents[uid] = words
            keywords = chance.sample(list(words), 1 + chance.randrange(min(2, len(words))))
            hits = await call(pstore.search, store, keywords, 100)
            score = sum(words[word] for word in keywords)
            claim((uid, score) in hits, f"document {uid} has {words}, and the search for {keywords} has {hits}")
            scores = [score for _, score in hits]
            claim(scores == sorted(scores, reverse=True), f"the answers are not in order: {scores}")

    await together(*map(writer, range(3)))
    for keywords in (["sun"], ["moon", "star"], ["tree", "leaf", "sun"], ["nothing"]):
        hits, all_hits = await call(pstore.search, store, keywords, 100), should(keywords)
        claim(dict(hits) == all_hits, f"{keywords} should find {all_hits}, and finds {hits}")
        few = await call(pstore.search, store, keywords, 2)
        best = sorted(all_hits.values(), reverse=True)[:2]
        claim([score for _, score in few] == best, f"the best two of {keywords} are {best}, and the search has {few}")


if __name__ == "__main__":
    run(check)
