//! Sessions with a server: several programs on one cluster, the death of clients, the end of the server,
//! nonsense.

mod served {
    pub mod deaths;
    pub mod endings;
    pub mod nonsense;
    pub mod shared;
    pub mod snapshots;
    pub mod support;
}
