//! Sessions with a server: several programs on one cluster, the death of clients, the end of the server.

mod served {
    pub mod endings;
    pub mod shared;
    pub mod support;
}
