package drawdown;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.Token;
import org.apache.avro.Schema;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedGenerator;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.expressions.Cube;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.GroupingSets;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.expressions.Rollup;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.UpperCaseCharStream;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Option;
import scala.Product;
import scala.Tuple3;
import scala.collection.Iterable;
import scala.collection.Iterator;

/**
 * Finds in a text that Spark has parsed, and not analysed, what is on no list of spark/sql_functions.toml.
 * Answers are {kind, name, further words}; spark/sql_functions.py makes sentences of them.
 */
public class ParsedSql {
    /** They answer with DDL. */
    private static final List INFERRING = Arrays.asList(
        new Object[] {"schema_of_csv", "schema_of_json", "schema_of_xml"});
    private static final int SCHEMA_LEVELS = 100;
    private static final int SCHEMA_TEXT = 100000;
    private static final int AVRO_FIELDS = 10000;
    private static final int OPTION_TEXT = 1000;

    private final Set expressions;
    private final Set functions;
    private final Set tables;
    private final Set growing;
    private final Map options;
    private final Map schemas;
    private final Set hints;
    private final long partitions;
    private final long recursion;
    private final long groups;

    /**
     * Each list is a text of one name a line.
     *
     * @param growing functions of both kinds whose arguments GuardedFunctions takes by their place
     * @param options a line for each function: its name, the place of the map, the options in small letters
     * @param schemas a line for each function that takes a schema or type as text: its name, the argument's place,
     *     and whether it is DDL or Avro
     * @param hints names in capitals
     * @param partitions the most that a hint may ask for
     * @param recursion the most levels that a recursive query may ask for
     * @param groups the most sets that one GROUP BY may have
     */
    public ParsedSql(
            String expressions, String functions, String tables, String growing, String options, String schemas,
            String hints, long partitions, long recursion, long groups) {
        this.expressions = lines(expressions);
        this.functions = lines(functions);
        this.tables = lines(tables);
        this.growing = lines(growing);
        this.options = byName(options);
        this.schemas = byName(schemas);
        this.hints = lines(hints);
        this.partitions = partitions;
        this.recursion = recursion;
        this.groups = groups;
    }

    /** The first part of a parsed query or expression that no list has; null if there is none. */
    public String[] beyond(Object part) {
        String[] found = beyondItself(part);
        Iterator parts = found == null ? parts(part) : null;
        while (found == null && parts != null && parts.hasNext()) {
            found = beyond(parts.next());
        }
        return found;
    }

    /**
     * The columns of the widest CUBE (...) in a text, 0 without one. Spark's parser writes out all its sets, 2 by
     * that number, where it stands in GROUPING SETS: so this is asked before it parses.
     */
    public int widestCube(String text) {
        SqlBaseLexer lexer = new SqlBaseLexer(new UpperCaseCharStream(CharStreams.fromString(text)));
        lexer.removeErrorListeners();
        List kinds = new ArrayList();
        for (Token token = lexer.nextToken(); token.getType() != Token.EOF; token = lexer.nextToken()) {
            if (token.getChannel() == Token.DEFAULT_CHANNEL) {
                kinds.add(new Integer(token.getType()));
            }
        }
        int widest = 0;
        for (int at = 0; at + 1 < kinds.size(); at++) {
            if (is(kinds, at, SqlBaseLexer.CUBE) && is(kinds, at + 1, SqlBaseLexer.LEFT_PAREN)) {
                widest = Math.max(widest, listed(kinds, at + 1));
            }
        }
        return widest;
    }

    /** How many things stand in the parentheses that open here. */
    private static int listed(List kinds, int open) {
        int depth = 0;
        int number = 1;
        for (int at = open; at < kinds.size(); at++) {
            if (is(kinds, at, SqlBaseLexer.LEFT_PAREN)) {
                depth++;
            } else if (is(kinds, at, SqlBaseLexer.RIGHT_PAREN)) {
                depth--;
                if (depth == 0) {
                    return number;
                }
            } else if (depth == 1 && is(kinds, at, SqlBaseLexer.COMMA)) {
                number++;
            }
        }
        return number;
    }

    private static boolean is(List kinds, int at, int kind) {
        return ((Integer) kinds.get(at)).intValue() == kind;
    }

    /** The sets of one GROUP BY: those of several CUBE and ROLLUP are multiplied. */
    private String[] ofGroups(Iterable grouped) {
        double sets = 1;
        Iterator each = grouped.iterator();
        while (each.hasNext()) {
            Object by = each.next();
            if (by instanceof Cube) {
                sets *= Math.pow(2, ((Cube) by).groupingSets().size());
            } else if (by instanceof Rollup) {
                sets *= ((Rollup) by).groupingSets().size() + 1;
            } else if (by instanceof GroupingSets) {
                sets *= Math.max(1, ((GroupingSets) by).groupingSets().size());
            }
        }
        return sets > groups ? new String[] {"groups", "", String.format("%.0f", sets)} : null;
    }

    private String[] beyondItself(Object part) {
        if (part instanceof Aggregate) {
            return ofGroups(((Aggregate) part).groupingExpressions());
        }
        if (part instanceof UnresolvedFunction) {
            UnresolvedFunction call = (UnresolvedFunction) part;
            return ofCall("function", call.nameParts(), functions, call.arguments());
        }
        if (part instanceof UnresolvedTableValuedFunction) {
            UnresolvedTableValuedFunction call = (UnresolvedTableValuedFunction) part;
            return ofCall("table", call.name(), tables, call.functionArgs());
        }
        if (part instanceof UnresolvedGenerator) {
            UnresolvedGenerator call = (UnresolvedGenerator) part;
            return ofCall("function", call.name().nameParts(), functions, call.children());
        }
        if (part instanceof UnresolvedHint) {
            return ofHint((UnresolvedHint) part);
        }
        if (part instanceof UnresolvedWith) {
            return ofLevels((UnresolvedWith) part);
        }
        if (part instanceof Expression && !expressions.contains(simpleName(part))) {
            return new String[] {"expression", simpleName(part), ""};
        }
        return null;
    }

    /** A name of Spark's own functions may have builtin or system.builtin before it. */
    private String[] ofCall(String kind, Iterable parts, Set allowed, Iterable arguments) {
        String plain = parts.mkString(".").toLowerCase(Locale.ROOT);
        String prefix = parts.size() == 3 ? "system.builtin." : parts.size() == 2 ? "builtin." : "";
        if (plain.startsWith(prefix)) {
            plain = plain.substring(prefix.length());
        }
        if (!allowed.contains(plain)) {
            return new String[] {kind, plain, ""};
        }
        Iterator given = growing.contains(plain) ? arguments.iterator() : null;
        while (given != null && given.hasNext()) {
            if (given.next() instanceof NamedArgumentExpression) {
                return new String[] {"named", plain, ""};
            }
        }
        List known = (List) options.get(plain);
        String[] found = known == null ? null : ofOptions(plain, known, arguments.iterator());
        List schema = (List) schemas.get(plain);
        return found != null || schema == null ? found : ofSchema(plain, schema, arguments.iterator());
    }

    /**
     * A schema is a second text that Spark parses. In its form of JSON it may name classes, and hold expressions that
     * Spark evaluates with all its functions: so it is DDL, and it is written out. known: the name, the place, the form.
     */
    private static String[] ofSchema(String name, List known, Iterator arguments) {
        int at = Integer.parseInt((String) known.get(1));
        boolean avro = known.get(2).equals("avro");
        for (int number = 0; arguments.hasNext(); number++) {
            Object argument = arguments.next();
            if (argument instanceof NamedArgumentExpression) {
                return new String[] {"named", name, ""};
            }
            if (number == at) {
                Object given = !avro && isInferred(argument)
                    ? ((UnresolvedFunction) argument).arguments().apply(0) : argument;
                String text = textOf(given);
                if (text == null || !avro && given == argument && !isDdl(text)) {
                    return new String[] {avro ? "avro" : "schema", name, ""};
                }
                if (text.length() > SCHEMA_TEXT || depth(text) > SCHEMA_LEVELS
                        || avro && isLargeAvro(text)) {
                    return new String[] {"large-schema", name, ""};
                }
            }
        }
        return null;
    }

    /**
     * Whether an Avro schema has too many fields once Spark has written out its names: records that name another
     * twice are 2 by their number.
     */
    public static boolean isLargeAvro(String text) {
        try {
            // As Spark reads it (AvroDataToCatalyst); what is none is Spark's to refuse.
            return fields(new Schema.Parser().setValidateDefaults(false).parse(text), new HashMap()) > AVRO_FIELDS;
        } catch (RuntimeException cause) {
            return false;
        }
    }

    /** known: of each record that was seen, by its full name. */
    private static double fields(Schema schema, Map known) {
        Schema.Type kind = schema.getType();
        if (kind == Schema.Type.ARRAY) {
            return 1 + fields(schema.getElementType(), known);
        }
        if (kind == Schema.Type.MAP) {
            return 1 + fields(schema.getValueType(), known);
        }
        double number = 1;
        if (kind == Schema.Type.UNION) {
            for (Object each : schema.getTypes()) {
                number += fields((Schema) each, known);
            }
        }
        if (kind == Schema.Type.RECORD) {
            if (known.containsKey(schema.getFullName())) {
                return ((Double) known.get(schema.getFullName())).doubleValue();
            }
            // One that holds itself is Spark's to refuse.
            known.put(schema.getFullName(), new Double(1));
            for (Object each : schema.getFields()) {
                number += fields(((Schema.Field) each).schema(), known);
            }
            known.put(schema.getFullName(), new Double(number));
        }
        return number;
    }

    private static boolean isInferred(Object argument) {
        if (!(argument instanceof UnresolvedFunction)) {
            return false;
        }
        UnresolvedFunction call = (UnresolvedFunction) argument;
        return INFERRING.contains(call.nameParts().mkString(".").toLowerCase(Locale.ROOT))
            && !call.arguments().isEmpty();
    }

    private static String textOf(Object argument) {
        Object value = argument instanceof Literal ? ((Literal) argument).value() : null;
        return value instanceof UTF8String ? value.toString() : null;
    }

    /** Begins as a type or a column does, and as no JSON that Spark would take instead. */
    private static boolean isDdl(String text) {
        String begun = text.trim();
        char first = begun.isEmpty() ? ' ' : begun.charAt(0);
        return first == '`' || first == '_' || Character.isLetter(first);
    }

    /** How many levels of types, JSON or XML are open at once; in a text of neither at least as many. */
    private static int depth(String text) {
        boolean xml = text.trim().startsWith("<");
        int types = 0;
        int elements = 0;
        int deepest = 0;
        for (int at = 0; at < text.length(); at++) {
            char each = text.charAt(at);
            char next = at + 1 < text.length() ? text.charAt(at + 1) : ' ';
            if ("<([{".indexOf(each) >= 0) {
                types++;
            } else if (">)]}".indexOf(each) >= 0 && types > 0) {
                types--;
            }
            if (each == '<' && Character.isLetter(next)) {
                elements++;
            } else if ((each == '<' && next == '/' || each == '/' && next == '>') && elements > 0) {
                elements--;
            }
            deepest = Math.max(deepest, types);
            deepest = Math.max(deepest, xml ? elements : 0);
        }
        return deepest;
    }

    /** known: the name, the place of the map, and what it may hold. */
    private String[] ofOptions(String name, List known, Iterator arguments) {
        int at = Integer.parseInt((String) known.get(1));
        for (int number = 0; arguments.hasNext(); number++) {
            Object argument = arguments.next();
            if (argument instanceof NamedArgumentExpression) {
                return new String[] {"options", name, ""};
            }
            if (number >= at) {
                String[] found = ofMap(name, known.subList(2, known.size()), argument);
                if (found != null) {
                    return found;
                }
            }
        }
        return null;
    }

    private String[] ofMap(String name, List keys, Object argument) {
        if (!(argument instanceof UnresolvedFunction)) {
            return new String[] {"options", name, ""};
        }
        UnresolvedFunction map = (UnresolvedFunction) argument;
        boolean plain = "map".equalsIgnoreCase(map.nameParts().mkString("."));
        Iterator entries = map.arguments().iterator();
        for (int number = 0; plain && entries.hasNext(); number++) {
            Object entry = entries.next();
            if (!(entry instanceof Literal) || ((Literal) entry).value() == null) {
                plain = false;
            } else if (number % 2 == 0) {
                String key = ((Literal) entry).value().toString();
                if (!keys.contains(key.toLowerCase(Locale.ROOT))) {
                    return new String[] {"option", name, key};
                }
            } else if (((Literal) entry).value().toString().length() > OPTION_TEXT) {
                return new String[] {"long-option", name, ""};
            }
        }
        return plain ? null : new String[] {"options", name, ""};
    }

    private String[] ofHint(UnresolvedHint hint) {
        String name = hint.name().toUpperCase(Locale.ROOT);
        if (!hints.contains(name)) {
            return new String[] {"hint", name, ""};
        }
        Iterator given = hint.parameters().iterator();
        while (given.hasNext()) {
            Object each = given.next();
            Object value = each instanceof Literal ? ((Literal) each).value() : null;
            if (value instanceof Number && ((Number) value).doubleValue() > partitions) {
                return new String[] {"partitions", name, value.toString()};
            }
        }
        return null;
    }

    private String[] ofLevels(UnresolvedWith with) {
        Iterator named = with.cteRelations().iterator();
        while (named.hasNext()) {
            Tuple3 each = (Tuple3) named.next();
            Option levels = (Option) each._3();
            if (levels.isDefined()) {
                long asked = ((Number) levels.get()).longValue();
                if (asked < 0 || asked > recursion) {
                    return new String[] {"levels", (String) each._1(), String.valueOf(asked)};
                }
            }
        }
        return null;
    }

    /** The words of each line, by the first. */
    private static Map byName(String text) {
        Map found = new HashMap();
        java.util.Iterator each = lines(text).iterator();
        while (each.hasNext()) {
            List words = Arrays.asList(((String) each.next()).split(" "));
            found.put(words.get(0), words);
        }
        return found;
    }

    private static Set lines(String text) {
        return new HashSet(Arrays.asList(text.split("\n")));
    }

    private static Iterator parts(Object part) {
        if (part instanceof Iterable) {
            return ((Iterable) part).iterator();
        }
        boolean walked = part instanceof TreeNode || part instanceof Option
            || (part instanceof Product && part.getClass().getName().startsWith("scala.Tuple"));
        return walked ? ((Product) part).productIterator() : null;
    }

    private static String simpleName(Object node) {
        String simple = node.getClass().getSimpleName();
        return simple.endsWith("$") ? simple.substring(0, simple.length() - 1) : simple;
    }
}
