//! Tests of the wrappers that need a server around them.

#[pgrx::pg_schema]
#[allow(clippy::disallowed_methods)] // tests create what statements then read
mod tests {
    use std::cell::RefCell;
    use std::ops::ControlFlow;

    use kernel::graph::turn::TurnId;
    use pgrx::prelude::*;

    use crate::pg::private::private_table::PrivateTable;
    use crate::pg::query::{Argument, ColumnType, Planning, Statement, Template, query};

    fn statement(text: &'static str, columns: &'static [ColumnType]) -> Statement {
        let template = Template { text, columns, planning: Planning::Once };
        Statement::new(&template, text.to_owned(), Vec::new())
    }

    #[pg_test]
    fn ids_go_in_and_rows_come_out_until_the_sink_breaks() {
        let ids: Vec<TurnId> = (1..=5).map(TurnId::from_u128).collect();
        let mut seen = Vec::new();
        let unnested =
            statement("SELECT k.id FROM pg_catalog.unnest($1) AS k(id)", &[ColumnType::Id]);
        query(&unnested, &[Argument::Ids(&ids)], |row| {
            seen.extend(row.id(0));
            if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(seen, ids[..3]);
    }

    #[pg_test]
    fn values_are_read_by_their_types_and_null_is_none() {
        let values = statement(
            "SELECT 1.5::float8, -7::int8, 'x'::text, NULL::text, NULL::uuid",
            &[
                ColumnType::Number,
                ColumnType::Integer,
                ColumnType::Text,
                ColumnType::Text,
                ColumnType::Id,
            ],
        );
        query(&values, &[], |row| {
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
        let long = statement("SELECT pg_catalog.repeat('ä', 100000)", &[ColumnType::Text]);
        query(&long, &[], |row| {
            assert!(row.text(0, |text| text.is_some_and(|t| t.chars().count() == 100_000)));
            ControlFlow::Continue(())
        });
    }

    #[pg_test]
    fn a_query_may_run_inside_the_sink_of_another() {
        let depth = RefCell::new(Vec::new());
        query(&statement("SELECT 1::int8", &[ColumnType::Integer]), &[], |outer| {
            query(&statement("SELECT 2::int8", &[ColumnType::Integer]), &[], |inner| {
                depth.borrow_mut().extend([outer.i64(0), inner.i64(0)]);
                ControlFlow::Continue(())
            });
            ControlFlow::Continue(())
        });
        assert_eq!(depth.into_inner(), [Some(1), Some(2)]);
    }

    #[pg_test(
        error = "column 1 of a statement over the bound tables has type integer, not the one that was checked"
    )]
    fn a_column_of_another_type_is_not_read() {
        query(&statement("SELECT 1", &[ColumnType::Integer]), &[], |_| ControlFlow::Continue(()));
    }

    #[pg_test(error = "a name in a statement over the bound tables has gone to another object")]
    fn a_table_that_was_not_said_is_not_read() {
        Spi::run("CREATE TABLE public.unsaid (id uuid)").unwrap();
        let unsaid = statement("SELECT u.id FROM ONLY public.unsaid AS u", &[ColumnType::Id]);
        query(&unsaid, &[], |_| ControlFlow::Continue(()));
    }

    #[pg_test(error = "a name in a statement over the bound tables has gone to another object")]
    fn a_function_of_a_users_is_not_called() {
        Spi::run(
            "CREATE FUNCTION public.seven() RETURNS bigint LANGUAGE sql AS 'SELECT 7::bigint'",
        )
        .unwrap();
        let seven = statement("SELECT public.seven()", &[ColumnType::Integer]);
        query(&seven, &[], |_| ControlFlow::Continue(()));
    }

    /// A frozen row keeps the number of its transaction, which is another one's once numbers have wrapped.
    #[pg_test]
    fn a_frozen_row_has_no_writer() {
        for sql in [
            "CREATE TABLE graph_kernel.frozen (number integer)",
            "ALTER EXTENSION graph_kernel ADD TABLE graph_kernel.frozen",
            "COPY graph_kernel.frozen FROM PROGRAM 'echo 1' WITH (FREEZE)",
            "INSERT INTO graph_kernel.frozen VALUES (2)",
        ] {
            Spi::run(sql).unwrap();
        }
        let table = PrivateTable { name: c"frozen", columns: &[pg_sys::INT4OID] };
        let mut writers = table.scan(|row| Some((row.integer(0)?, row.writer())));
        writers.sort_unstable_by_key(|(number, _)| *number);
        // SAFETY: reads the transaction's state.
        let own = unsafe { pg_sys::GetCurrentTransactionIdIfAny() };
        assert_eq!(writers, [(1, None), (2, Some(own))]);
    }
}
