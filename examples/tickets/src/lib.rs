//! Functions that are written against the crate `foundationdb`, and the workloads that shake them: a shop of
//! this crate, and the two recipes that `foundationdb` ships.

pub mod election;
pub mod fenced;
pub mod register;
pub mod sale;
pub mod shop;

#[cfg(test)]
mod plain;
#[cfg(test)]
mod tests {
    use foundationdb::{
        Database, FdbBindingError,
        directory::{Directory, DirectoryLayer},
    };

    /// The prefixes of new directories: an allocator draws them.
    async fn prefixes() -> Result<Vec<Vec<u8>>, FdbBindingError> {
        let (db, mut prefixes) = (Database::default()?, Vec::new());
        for name in ["a", "b", "c"] {
            let path = [name.to_owned()];
            let created = db.run(|tx, _| {
                let path = &path;
                async move {
                    let directory = DirectoryLayer::default().create(&tx, path, None, None).await?;
                    Ok(directory.bytes().map_err(FdbBindingError::from)?.to_vec())
                }
            });
            prefixes.push(created.await?);
        }
        Ok(prefixes)
    }

    #[test]
    fn what_is_drawn_at_random_is_the_same_in_the_next_run_of_the_process() {
        let run = || shaketable::calm::simulate(|_| async { prefixes().await.expect("the cluster is calm") });
        let first = run();
        assert_eq!(first.len(), 3);
        assert_eq!(run(), first);
    }
}
