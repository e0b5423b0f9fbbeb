//! A cluster moved as files.

use crate::cluster::Cluster;
use crate::graph::{active_key, install, reasons, rotate, slice};
use crate::secret_file;

#[test]
fn a_cluster_moved_by_copying_its_files_verifies_and_signs_as_before() {
    let mut origin = Cluster::start("");
    let mut client = origin.client();
    install(&mut client);
    let mut exports = vec![slice(&mut client)];
    rotate(&mut client);
    exports.push(slice(&mut client));
    drop(client);

    origin.stop();
    let moved = Cluster::copy_of(&origin);
    let mut client = moved.client();
    assert_eq!(reasons(&mut client, &exports), ["ok"; 2]);
    assert_eq!(slice(&mut client), exports[1]);

    // From here on they are two: an epoch of one is unknown to the other.
    origin.launch();
    rotate(&mut client);
    exports.push(slice(&mut client));
    assert_eq!(reasons(&mut origin.client(), &exports), ["ok", "ok", "unknown_key"]);
}

#[test]
fn a_moved_cluster_with_a_key_file_needs_the_file() {
    let mut origin = Cluster::start("");
    let root = secret_file::random(32);
    let mut client = origin.client();
    install(&mut client);
    let path = secret_file::use_root(&origin, &root);
    let mut client = origin.client();
    let exports = [slice(&mut client)];
    drop(client);

    origin.stop();
    let moved = Cluster::copy_of(&origin);
    let elsewhere = secret_file::use_root(&moved, &root);
    assert_ne!(path, elsewhere);
    let mut client = moved.client();
    assert_eq!(reasons(&mut client, &exports), ["ok"]);
    secret_file::use_root(&moved, &secret_file::random(32));
    assert_eq!(reasons(&mut client, &exports), ["unknown_key"]);
    assert_ne!(active_key(&mut client), crate::graph::kid(&exports[0]));
}
