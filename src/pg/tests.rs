//! Tests of the wrappers that need a server around them.

#[pgrx::pg_schema]
mod tests {
    use std::cell::RefCell;
    use std::ops::ControlFlow;

    use kernel::turn::TurnId;
    use pgrx::prelude::*;

    use crate::pg::spi::{Argument, Cursor, query};

    #[pg_test]
    fn ids_go_in_and_rows_come_out_until_the_sink_breaks() {
        let ids: Vec<TurnId> = (1..=5).map(TurnId::from_u128).collect();
        let mut seen = Vec::new();
        query("SELECT k.id FROM pg_catalog.unnest($1) AS k(id)", &[Argument::Ids(&ids)], |row| {
            seen.extend(row.id(0));
            if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(seen, ids[..3]);
    }

    #[pg_test]
    fn values_are_read_by_their_types_and_null_is_none() {
        query("SELECT 1.5::float8, -7::int8, 'x'::text, NULL::text, NULL::uuid", &[], |row| {
            assert_eq!(row.f64(0), Some(1.5));
            assert_eq!(row.i64(1), Some(-7));
            assert_eq!(row.text(2, |text| text.map(str::to_owned)).as_deref(), Some("x"));
            assert!(row.text(3, |text| text.is_none()));
            assert_eq!(row.id(4), None);
            ControlFlow::Continue(())
        });
    }

    #[pg_test]
    fn long_texts_come_whole() {
        query("SELECT pg_catalog.repeat('ä', 100000)", &[], |row| {
            assert!(row.text(0, |text| text.is_some_and(|t| t.chars().count() == 100_000)));
            ControlFlow::Continue(())
        });
    }

    #[pg_test]
    fn a_query_may_run_inside_the_sink_of_another() {
        let depth = RefCell::new(Vec::new());
        query("SELECT 1::int8", &[], |outer| {
            query("SELECT 2::int8", &[], |inner| {
                depth.borrow_mut().extend([outer.i64(0), inner.i64(0)]);
                ControlFlow::Continue(())
            });
            ControlFlow::Continue(())
        });
        assert_eq!(depth.into_inner(), [Some(1), Some(2)]);
    }

    #[pg_test]
    fn a_cursor_waits_between_its_rows() {
        let statement = "SELECT k::int8 FROM pg_catalog.generate_series($1, 4) AS k";
        let mut first = Cursor::open(statement, &[Argument::Number(2)]);
        let mut second = Cursor::open(statement, &[Argument::Number(3)]);
        let mut seen = Vec::new();
        while first.next(|row| seen.extend(row.i64(0))).unwrap() {
            second.next(|row| seen.extend(row.i64(0))).unwrap();
        }
        assert_eq!(seen, [2, 3, 3, 4, 4]);
    }

    #[pg_test(error = "CREATE TABLE is not allowed in a non-volatile function")]
    fn a_statement_cannot_write() {
        query("CREATE TABLE public.written (id int)", &[], |_| ControlFlow::Continue(()));
    }
}
