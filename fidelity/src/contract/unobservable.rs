//! The promises of the contract that no client can check through its own calls, with the reason.

/// A promise without a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotObservable {
    /// The section of the contract.
    pub section: &'static str,
    /// The promise.
    pub promise: &'static str,
    /// Why no case checks it.
    pub reason: &'static str,
}

const fn row(section: &'static str, promise: &'static str, reason: &'static str) -> NotObservable {
    NotObservable { section, promise, reason }
}

/// Cases only check what a client does with such an error after receiving it.
const NEEDS_A_FAULT: &str = "no call provokes it: it takes a fault of the cluster or of the network";

/// Every promise of the contract that has no case.
pub const NOT_OBSERVABLE: &[NotObservable] = &[
    row("errors", "1021, 1037, 1038, 1039, 1042, 1051, 1078, 1213, 1223, 1235 and 1242 occur", NEEDS_A_FAULT),
    row(
        "errors",
        "The delay after 1042, 1078 and 1235 grows to 30 s instead of max_retry_delay",
        "a run that tells 30 s from 1 s with certainty takes minutes of a real cluster's time",
    ),
    row("errors", "The delay after 1213 takes the tag's throttling into account", NEEDS_A_FAULT),
    row(
        "errors",
        "The delay is uniform below the backoff",
        "a distribution shows only over many samples; its bounds are checked",
    ),
    row("commits", "When 1021 is seen the outcome is fixed and the original is not in flight", NEEDS_A_FAULT),
    row("commits", "A commit that ended with 1031, 1039 or 1101 may land later", NEEDS_A_FAULT),
    row(
        "commits",
        "A commit that is dropped may land, now or later",
        "both outcomes are allowed at every moment; nothing the case could see would break it",
    ),
    row("commits", "An idempotency id turns an unknown result into success, 1007 or 1022", NEEDS_A_FAULT),
    row(
        "commits",
        "A private key under \\xff/SC/ is added to both ranges unless they meet",
        "it is added behind the client's calls; that a blind write at an old version is 1007 shows it",
    ),
    row(
        "commits",
        "Rejected transactions of a batch take up places in its order",
        "a client does not see who shares its batch",
    ),
    row(
        "conflicts",
        "A transaction conflicts with an accepted earlier one of its own batch",
        "proxies choose what shares a batch; that two crossing ones do not both commit is checked",
    ),
    row("conflicts", "A read at a storage server that lags is 1037", NEEDS_A_FAULT),
    row(
        "conflicts",
        "A read version taken with causal_read_risky or from the GRV cache may be stale",
        "it may as well be fresh; nothing the case could see would break it",
    ),
    row(
        "options",
        "authorization_token outlives on_error",
        "its effect needs tenants and a cluster that demands tokens",
    ),
    row(
        "options",
        "Tags, priorities and lock awareness must be set again in each attempt",
        "their effect shows only on a throttled or locked cluster",
    ),
    row(
        "options",
        "The defaults 504, 506, 700, 701 and 702 of a handle hold for new transactions",
        "they cannot be switched off again, and would change the handle for every case that follows",
    ),
    row(
        "reads",
        "get_key and ranges resolve against the first and last key of the whole database",
        "cases own a prefix of a database that may hold other data; bases at '' and \\xff are checked",
    ),
    row(
        "reads",
        "Results through the end extend the conflict range to \\xff",
        "the case would need to own the end of the database; the recorded answers hold it",
    ),
    row(
        "reads",
        "A batch may be short, even empty, and still have more",
        "allowed, never demanded: cases accept it everywhere",
    ),
    row(
        "atomic",
        "Operations 18 and 19 are MinV2 and AndV2",
        "the contract's operations take the V2 forms under 13 and 6",
    ),
    row(
        "versionstamps",
        "The tuple form of a stamp has two more bytes of the user's",
        "it is an encoding of the tuple layer, not of the client",
    ),
    row("watches", "A watch whose value changes and changes back may not fire", "allowed, never demanded"),
    row(
        "watches",
        "A watch may be late, and what is there when it fires is not promised",
        "allowed, never demanded",
    ),
    row("watches", "A commit that ends with 1021 passes it to its watches", NEEDS_A_FAULT),
    row(
        "watches",
        "max_watches is 10,000 by default and 1,000,000 at most",
        "so many watches would burden a real cluster",
    ),
    row(
        "sizes",
        "A system key has at most 30,000 bytes",
        "the cases write no system key but \\xff/metadataVersion",
    ),
    row("sizes", "get_approximate_size is cheap", "a promise about time, not about answers"),
    row(
        "sizes",
        "2116 and 2117: clears across modules, failures of management calls",
        "management of a real cluster is not touched",
    ),
    row("sizes", "Tenants", "experimental, and gone from the main branch: the contract leaves them out"),
];
