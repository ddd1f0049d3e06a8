//! The Record Layer on a simulated cluster: the examples of its overview, and what could go wrong with
//! records, indexes, versions and ranks.

mod aggregates;
mod builds;
mod custom;
mod deletes;
mod fixture;
mod joined;
mod meta_data;
mod opening;
mod queries;
mod random_queries;
mod range_sets;
mod ranked_sets;
mod ranks;
mod readme;
mod record_versions;
mod saves;
mod scans;
mod schema;
mod scrubs;
mod sessions;
mod splits;
mod storing;
mod uniques;
mod versions;

use shaketable_workloads_shared::cluster::{self, begin, on_cluster};
