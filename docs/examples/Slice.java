// Slices with JDBC: java -cp postgresql.jar Slice.java 'jdbc:postgresql://host/database?user=name'
// The database is one that setup.sql has prepared.
import java.sql.Array;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.UUID;
import org.postgresql.util.PSQLException;

public class Slice {
    static final UUID ANCHOR = UUID.fromString("a9ad8365-bc0a-5da2-93e6-e37e99d95d9c");
    static final UUID MISSING = UUID.fromString("00000000-0000-4000-8000-00000000dead");

    public static void main(String[] arguments) throws SQLException {
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            slice(connection);
            export(connection);
            search(connection);
            fail(connection);
        }
    }

    // setString sends VARCHAR, for which there is no function: the policy takes a cast, the id is a UUID.
    static void slice(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(
                "SELECT s.role, t.content_text"
                + " FROM graph_slice_turns(?, ?::slice_policy) AS s"
                + " JOIN memory_turns AS t ON t.id = s.turn_id"
                + " ORDER BY s.selection_order")) {
            statement.setObject(1, ANCHOR);
            statement.setString(2, "{\"max_nodes\": 10}");
            int count = 0;
            for (ResultSet turns = statement.executeQuery(); turns.next(); count++) {
                check(count > 0 || turns.getString("role").equals("assistant"));
            }
            check(count == 10);
        }
    }

    // getString gives json as it came.
    static void export(Connection connection) throws SQLException {
        String export;
        try (PreparedStatement statement = connection.prepareStatement("SELECT graph_slice(?)")) {
            statement.setObject(1, ANCHOR);
            ResultSet row = statement.executeQuery();
            row.next();
            export = row.getString(1);
        }
        connection.createStatement().execute("CREATE TEMP TABLE kept_slices (slice json)");
        try (PreparedStatement statement = connection.prepareStatement("INSERT INTO kept_slices VALUES (?::json)")) {
            statement.setString(1, export);
            statement.executeUpdate();
        }
        ResultSet kept = connection.createStatement().executeQuery(
            "SELECT k.slice, v.valid, v.reason FROM kept_slices AS k, graph_verify(k.slice) AS v");
        kept.next();
        check(kept.getString("slice").equals(export));
        check(kept.getBoolean("valid") && kept.getString("reason").equals("ok"));

        try (PreparedStatement statement = connection.prepareStatement("SELECT reason FROM graph_verify(?::json)")) {
            statement.setString(1, export.replaceFirst("\"role\":\"user\"", "\"role\":\"assistant\""));
            ResultSet verdict = statement.executeQuery();
            verdict.next();
            check(verdict.getString("reason").equals("digest_mismatch"));
        }
    }

    // A question's embedding is an array from your model; here it is one of the sample's. float4 is PostgreSQL's real.
    static void search(Connection connection) throws SQLException {
        ResultSet sample = connection.createStatement().executeQuery(
            "SELECT embedding FROM questions WHERE question LIKE 'How are invoice numbers%'");
        sample.next();
        Float[] question = (Float[]) sample.getArray(1).getArray();

        Array embedding = connection.createArrayOf("float4", question);
        try (PreparedStatement statement = connection.prepareStatement(
                "SELECT turn_id, similarity FROM graph_search_slice(?, ?, limit_count => ?)")) {
            statement.setArray(1, embedding);
            statement.setObject(2, ANCHOR);
            statement.setInt(3, 3);
            ResultSet found = statement.executeQuery();
            found.next();
            check(found.getString("turn_id").equals("42cf2e38-23b6-526e-9986-c9360dae1b4d"));
        }

        try (PreparedStatement statement = connection.prepareStatement(
                "SELECT turn_id, similarity FROM graph_search(?, limit_count => ?)")) {
            statement.setArray(1, embedding);
            statement.setInt(2, 2);
            ResultSet everywhere = statement.executeQuery();
            everywhere.next();
            check(everywhere.getString("turn_id").equals("42cf2e38-23b6-526e-9986-c9360dae1b4d"));
        }
    }

    static void fail(Connection connection) throws SQLException {
        String sqlstate = null;
        String word = null;
        try (PreparedStatement statement = connection.prepareStatement("SELECT graph_slice(?)")) {
            statement.setObject(1, MISSING);
            statement.executeQuery();
        } catch (PSQLException error) {
            sqlstate = error.getSQLState();
            word = error.getServerErrorMessage().getDetail();
        }
        check("02000".equals(sqlstate) && "ANCHOR_NOT_FOUND".equals(word));
    }

    // Java's own assert does nothing unless it is switched on.
    static void check(boolean holds) {
        if (!holds) {
            throw new AssertionError();
        }
    }
}
