//! Streaming standbys have the keys of their primary.

use postgres::Client;

use crate::cluster::{Cluster, catch_up};
use crate::graph::{SLICE, active_key, install, reason, reasons, refusal, rotate, slice, text};
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

/// Reads are spread over two standbys: one asks the first, then the second. The file does not come along: without it a
/// standby does not know the keys.
#[test]
fn reads_are_spread_over_two_standbys() {
    let primary = Cluster::start("");
    install(&mut primary.client());
    let mut standbys = [Cluster::standby_of(&primary), Cluster::standby_of(&primary)];
    let root = secret_file::random(48);
    secret_file::use_root(&primary, &root);
    let mut writer = primary.client();
    rotate(&mut writer);
    let signed_by_file = slice(&mut writer);
    for standby in &mut standbys {
        let mut replica = standby.client();
        catch_up(&mut writer, &mut replica);
        assert_eq!(reason(&mut replica, &signed_by_file), "unknown_key");
        assert_eq!(refusal(&mut replica, SLICE), ("55000".into(), "KEYS_UNAVAILABLE".into()));
        secret_file::use_root(standby, &root);
        assert_eq!(reason(&mut standby.client(), &signed_by_file), "ok");
    }
    writer
        .batch_execute(
            "CREATE TABLE atoms (slice json, turns uuid[]);
             CREATE CONSTRAINT TRIGGER admissible AFTER INSERT OR UPDATE ON atoms FOR EACH ROW
                 EXECUTE FUNCTION graph_require_admissible('slice', 'turns')",
        )
        .unwrap();
    let mut clients = standbys.each_ref().map(Cluster::client);
    for round in 0..4 {
        writer
            .batch_execute(&format!(
                "UPDATE memory_turns SET salience_score = 1 - salience_score;
                 WITH new AS (INSERT INTO memory_turns (id, session_id, role, salience_score, created_at)
                              SELECT gen_random_uuid(), 's', 'user', n / 10.0, to_timestamp({round} * 10 + n)
                              FROM generate_series(1, 10) AS n RETURNING id)
                 INSERT INTO memory_turn_edges
                 SELECT (SELECT id FROM memory_turns ORDER BY md5(id::text || new.id) LIMIT 1), id, 'reply' FROM new"
            ))
            .unwrap();
        clients.iter_mut().for_each(|client| catch_up(&mut writer, client));
        let anchors = "SELECT id::text FROM memory_turns ORDER BY id";
        for (number, row) in writer.query(anchors, &[]).unwrap().iter().enumerate() {
            let anchor: String = row.get(0);
            for call in [
                format!("SELECT graph_slice('{anchor}', 'broad')::text"),
                format!("SELECT graph_messages_record('{anchor}')::text"),
            ] {
                let given = text(&mut clients[number % 2], &call);
                assert_eq!(given, text(&mut writer, &call), "{call}");
                assert_eq!(reason(&mut writer, &given), "ok");
                clients.iter_mut().for_each(|client| assert_eq!(reason(client, &given), "ok"));
            }
            let export =
                text(&mut clients[number % 2], &format!("SELECT graph_slice('{anchor}')::text"));
            writer
                .batch_execute(&format!("INSERT INTO atoms VALUES ('{export}', '{{{anchor}}}')"))
                .unwrap();
        }
    }
}

/// Each is asked in turn while the primary writes, and may be behind the other: what one gives, all verify.
#[test]
fn what_a_standby_signs_verifies_on_one_that_is_behind() {
    let primary = Cluster::start("");
    install(&mut primary.client());
    let root = secret_file::random(48);
    secret_file::use_root(&primary, &root);
    let standbys = [Cluster::standby_of(&primary), Cluster::standby_of(&primary)];
    for standby in &standbys {
        secret_file::use_root(standby, &root);
    }
    standbys[1].set("recovery_min_apply_delay", "1h");
    let mut writer = primary.client();
    let before = slice(&mut writer);
    let [mut ahead, mut behind] = standbys.each_ref().map(Cluster::client);
    writer.batch_execute("UPDATE memory_turns SET salience_score = 1 - salience_score").unwrap();
    catch_up(&mut writer, &mut ahead);
    let after = slice(&mut ahead);
    assert_ne!(after, before);
    assert_eq!(slice(&mut behind), before);
    let exports = [before, after];
    for client in [&mut writer, &mut ahead, &mut behind] {
        assert_eq!(reasons(client, &exports), ["ok", "ok"]);
    }
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
