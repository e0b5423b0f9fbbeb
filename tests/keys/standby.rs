//! A streaming standby has the keys of its primary.

use postgres::Client;

use crate::cluster::{Cluster, catch_up};
use crate::graph::{active_key, install, reason, reasons, refusal, rotate, slice, text};
use crate::secret_file;

/// What holds on a primary and its standby, whatever holds the keys.
fn follows(primary: &mut Client, standby: &mut Client) {
    catch_up(primary, standby);
    assert_eq!(text(standby, "SELECT pg_is_in_recovery()::text"), "true");
    let old = slice(primary);
    assert_eq!(slice(standby), old);
    assert_eq!(reason(standby, &old), "ok");

    let second = rotate(primary);
    catch_up(primary, standby);
    assert_eq!(active_key(standby), second);
    let new = slice(standby);
    assert_eq!(slice(primary), new);
    let exports = [old, new];
    assert_eq!(reasons(standby, &exports), ["ok", "ok"]);
    assert_eq!(reasons(primary, &exports), ["ok", "ok"]);

    text(primary, "SELECT graph_kernel.rotate_key(revoke_old => true)");
    catch_up(primary, standby);
    assert_eq!(reasons(standby, &exports), ["ok", "revoked_key"]);
    assert_eq!(refusal(standby, "SELECT graph_kernel.rotate_key()").0, "25006");
}

#[test]
fn a_standby_signs_and_verifies_as_its_primary() {
    let primary = Cluster::start("");
    let mut client = primary.client();
    install(&mut client);
    let standby = Cluster::standby_of(&primary);
    follows(&mut client, &mut standby.client());
}

#[test]
fn a_standby_with_the_root_key_file_signs_and_verifies_as_its_primary() {
    let primary = Cluster::start("");
    install(&mut primary.client());
    let root = secret_file::random(48);
    secret_file::use_root(&primary, &root);
    let standby = Cluster::standby_of(&primary);
    secret_file::use_root(&standby, &root);
    follows(&mut primary.client(), &mut standby.client());
}

#[test]
fn a_standby_verifies_on_when_it_is_promoted() {
    let primary = Cluster::start("");
    let mut client = primary.client();
    install(&mut client);
    let standby = Cluster::standby_of(&primary);
    let mut replica = standby.client();
    rotate(&mut client);
    let export = slice(&mut client);
    catch_up(&mut client, &mut replica);
    drop(primary);

    assert_eq!(text(&mut replica, "SELECT pg_promote()::text"), "true");
    assert_eq!(reason(&mut replica, &export), "ok");
    let next = rotate(&mut replica);
    assert_eq!(active_key(&mut replica), next);
    assert_eq!(reason(&mut replica, &export), "ok");
}
