//! The size of a cluster, as far as the user fixes it; the seed draws the rest.

use bytes::Bytes;
use shaketable_sim::config::ClusterConfig;
use std::fmt;

/// The most machines of a role that can be asked for.
const MOST: u16 = 50;

/// The numbers that can be fixed: the name, the place in a configuration, and the least number.
const NUMBERS: [(&str, NumberField, u16); 7] = [
    ("storage_servers", |config| &mut config.storage_servers, 1),
    ("replicas", |config| &mut config.replicas, 1),
    ("logs", |config| &mut config.logs, 1),
    ("grv_proxies", |config| &mut config.grv_proxies, 1),
    ("commit_proxies", |config| &mut config.commit_proxies, 1),
    ("resolvers", |config| &mut config.resolvers, 1),
    ("spares", |config| &mut config.spares, 0),
];

type NumberField = fn(&mut ClusterConfig) -> &mut u16;

/// Numbers of a cluster that are fixed, in the order of [`NUMBERS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology([Option<u16>; NUMBERS.len()]);

impl Topology {
    /// Parses `storage_servers=3,replicas=2`. The error is what is wrong with it.
    pub fn parse(text: &str) -> Result<Topology, String> {
        let mut topology = Topology::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, number) = part.split_once('=').ok_or(format!("{part} is not NAME=NUMBER"))?;
            let known = NUMBERS.iter().position(|(known, ..)| *known == name.trim());
            let names = || NUMBERS.map(|(name, ..)| name).join(", ");
            let index = known.ok_or_else(|| format!("{} is none of {}", name.trim(), names()))?;
            let least = NUMBERS[index].2;
            let number = number.trim().parse().ok().filter(|number| (least..=MOST).contains(number));
            let number = number.ok_or_else(|| format!("{part} is not a number from {least} to {MOST}"))?;
            topology.0[index] = Some(number);
        }
        match (topology.0[0], topology.0[1]) {
            (Some(servers), Some(replicas)) if replicas > servers => {
                Err(format!("{replicas} replicas for {servers} storage servers"))
            }
            _ => Ok(topology),
        }
    }

    /// Fixes the numbers of a drawn configuration, and makes what was drawn fit them.
    pub fn apply(&self, config: &mut ClusterConfig) {
        for ((_, place, _), number) in NUMBERS.iter().zip(self.0) {
            *place(config) = number.unwrap_or(*place(config));
        }
        match self.0[1] {
            Some(replicas) => config.storage_servers = config.storage_servers.max(replicas),
            None => config.replicas = config.replicas.min(config.storage_servers),
        }
        if config.resolver_boundaries.len() + 1 != usize::from(config.resolvers) {
            let count = u32::from(config.resolvers);
            let boundary = |n: u32| Bytes::copy_from_slice(&[(n * 256 / count) as u8]);
            config.resolver_boundaries = (1..count).map(boundary).collect();
        }
    }

    /// Whether nothing is fixed.
    pub fn is_free(&self) -> bool {
        *self == Topology::default()
    }
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fixed = NUMBERS.iter().zip(self.0);
        let fixed = fixed.filter_map(|((name, ..), number)| Some(format!("{name}={}", number?)));
        f.write_str(&fixed.collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shaketable_sim::seed::Seed;

    #[test]
    fn what_is_fixed_holds_for_every_seed_and_the_rest_fits_it() {
        for text in [
            "storage_servers=1",
            "replicas=7",
            "resolvers=50,spares=0",
            "logs=3, storage_servers=5,replicas=5",
        ] {
            let topology = Topology::parse(text).expect("it is understood");
            assert_eq!(Topology::parse(&topology.to_string()), Ok(topology.clone()));
            for seed in 0..200 {
                let mut config = ClusterConfig::draw(Seed(seed), &[]);
                topology.apply(&mut config);
                assert_eq!(config.check(), Ok(()), "{text}");
                for part in text.split(',') {
                    let (name, number) = part.trim().split_once('=').expect("two parts");
                    let (_, place, _) = NUMBERS.iter().find(|(known, ..)| *known == name).expect("a name");
                    assert_eq!(place(&mut config).to_string(), number, "{text}");
                }
            }
        }
        let (mut config, drawn) = (ClusterConfig::draw(Seed(1), &[]), ClusterConfig::draw(Seed(1), &[]));
        Topology::default().apply(&mut config);
        assert_eq!(config, drawn);
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        for (text, said) in [
            ("servers=3", "servers is none of storage_servers, replicas, "),
            ("logs", "logs is not NAME=NUMBER"),
            ("logs=0", "logs=0 is not a number from 1 to 50"),
            ("spares=51", "spares=51 is not a number from 0 to 50"),
            ("replicas=3,storage_servers=2", "3 replicas for 2 storage servers"),
        ] {
            let refused = Topology::parse(text).expect_err("it is wrong");
            assert!(refused.starts_with(said), "{refused}");
        }
    }
}
