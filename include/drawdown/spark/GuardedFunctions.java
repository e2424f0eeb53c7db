package drawdown;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.FunctionRegistryBase;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin$;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.types.*;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.UTF8String;
import scala.Function1;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractFunction1;

/**
 * Bounds what the functions that grow (spark/sql_functions.toml) make, in SQL texts alone: a call by Spark's
 * DataFrame functions is left as it is.
 *
 * A size that the text fixes is checked when the text is analysed, and the call stays what it was. For any other
 * the size is computed for each row before the call, from the same values: `f(a, b)` becomes
 * `transform(array(struct(a, b)), x -> if(size(x) > limit, raise_error(...), f(x.a, x.b)))[0]`, in which each
 * argument stands once, so that nested calls do not multiply and a random one is not asked twice.
 */
public class GuardedFunctions {
    /** In each message of a setting, by which spark/sql_bounds.py knows it. */
    private static final String MARK = "sql_limits: {";
    private static final List SETTINGS = Arrays.asList(new Object[] {"text", "elements", "partitions"});
    private static final long SHORT = 64;
    private static final long DIGITS = 10000;
    private static final long WINDOWS = 400;
    private static final long LEVELS = 500;
    private static final long PATH = 100;
    /** Of 64 bits, in which Spark keeps approx_count_distinct at an error of 0.02. */
    private static final long WORDS = 410;
    private static final int NAME = 128;
    private static final Pattern AGAIN = Pattern.compile("%(\\d+\\$|[-#+ 0,(]*<)?");
    private static final Pattern FORMAT = Pattern.compile("%(\\d+\\$)?[-#+ 0,(<]*(\\d+)?(\\.(\\d+))?");

    private final double text;
    private final double elements;
    private final double partitions;

    public GuardedFunctions(long text, long elements, long partitions) {
        this.text = text;
        this.elements = elements;
        this.partitions = partitions;
    }

    /** Puts a bound around functions of a registry; names: one a line. */
    public void bind(FunctionRegistryBase registry, String names) {
        for (String name : names.split("\\n")) {
            FunctionIdentifier of = new FunctionIdentifier(name, Option.apply("builtin"), Option.apply("system"));
            Tuple2 known = (Tuple2) registry.lookupFunctionEntry(of).get();
            registry.dropFunction(of);
            registry.registerFunction(of, (ExpressionInfo) known._1(), new Bounded(this, name, (Function1) known._2()));
        }
    }

    /** An expression of an optimised plan as it would be without bounds. */
    public Expression unbounded(Expression expression) {
        List children = new ArrayList();
        boolean changed = false;
        for (Object child : CollectionConverters.asJava(expression.children())) {
            Expression bare = unbounded((Expression) child);
            changed = changed || bare != child;
            children.add(bare);
        }
        Expression now = changed ? (Expression) expression.withNewChildren(seq(children)) : expression;
        return bare(now);
    }

    private static Expression bare(Expression expression) {
        Object held = expression instanceof GetArrayItem ? ((GetArrayItem) expression).child() : null;
        if (!(held instanceof ArrayTransform)) {
            return expression;
        }
        ArrayTransform each = (ArrayTransform) held;
        LambdaFunction function = (LambdaFunction) each.function();
        Expression body = function.function();
        boolean guard = false;
        while (body instanceof If && ((If) body).trueValue().toString().contains(MARK)) {
            guard = true;
            body = ((If) body).falseValue();
        }
        if (!guard || !(each.argument() instanceof CreateArray)) {
            return expression;
        }
        Expression given = (Expression) ((CreateArray) each.argument()).children().apply(0);
        return withValues(body, (NamedLambdaVariable) function.arguments().apply(0), given);
    }

    private static Expression withValues(Expression body, NamedLambdaVariable row, Expression given) {
        if (body instanceof GetStructField && isRow(((GetStructField) body).child(), row)) {
            return (Expression) given.children().apply(2 * ((GetStructField) body).ordinal() + 1);
        }
        if (isRow(body, row)) {
            return given;
        }
        List children = new ArrayList();
        for (Object child : CollectionConverters.asJava(body.children())) {
            children.add(withValues((Expression) child, row, given));
        }
        return children.isEmpty() ? body : (Expression) body.withNewChildren(seq(children));
    }

    private static boolean isRow(Object expression, NamedLambdaVariable row) {
        return expression instanceof NamedLambdaVariable
            && ((NamedLambdaVariable) expression).exprId().equals(row.exprId());
    }

    /** What a registry calls: the builder, and around what it makes the bound. */
    private static class Bounded extends AbstractFunction1 {
        private final GuardedFunctions limits;
        private final String name;
        private final Function1 builder;

        Bounded(GuardedFunctions limits, String name, Function1 builder) {
            this.limits = limits;
            this.name = name;
            this.builder = builder;
        }

        public Object apply(Object given) {
            if (CurrentOrigin$.MODULE$.get().sqlText().isEmpty()) {
                return builder.apply(given);
            }
            List arguments = new ArrayList(CollectionConverters.asJava((Seq) given));
            if (name.equals("approx_count_distinct") && arguments.size() > 1) {
                refuseFine((Expression) arguments.get(1));
            }
            Object built = builder.apply(given);
            return limits.guarded(name, builder, arguments, built);
        }
    }

    Object guarded(String name, Function1 builder, List given, Object built) {
        if (built instanceof Range) {
            Range range = (Range) built;
            refuse(name, range.numElements().doubleValue(), elements, "elements");
            if (range.numSlices().isDefined()) {
                refuse(name, ((Number) range.numSlices().get()).doubleValue(), partitions, "partitions");
            }
            return built;
        }
        if (built instanceof TimeWindow) {
            TimeWindow window = (TimeWindow) built;
            double windows = Math.ceil((double) window.windowDuration() / window.slideDuration());
            refuse(name, windows, WINDOWS, "windows for each row");
            return built;
        }
        Call call = new Call(this, name, builder, given);
        if (name.equals("repeat")) {
            call.unless(times(call.bytes(0), call.number(1)), text, "text");
        } else if (name.equals("space")) {
            call.unless(call.number(0), text, "text");
        } else if (name.equals("lpad") || name.equals("rpad")) {
            call.unless(call.number(1), text, "text");
        } else if (name.equals("randstr")) {
            call.unless(call.number(0), text, "text");
        } else if (name.equals("format_string") || name.equals("printf")) {
            refuse(name, widths(name, (Expression) given.get(0)), text, "text");
            call.repeatsArguments();
        } else if (name.equals("format_number")) {
            if (call.type(1) instanceof IntegralType) {
                call.unless(call.number(1), text, "text");
            }
        } else if (Arrays.asList("round", "bround", "ceil", "ceiling", "floor").contains(name)) {
            if (given.size() > 1) {
                call.unless(new Abs(call.number(1)), DIGITS, "digits");
            }
        } else if (name.equals("replace")) {
            call.replaces();
        } else if (name.equals("regexp_replace")) {
            call.replacesPattern();
        } else if (name.equals("concat_ws") || name.equals("array_join")) {
            call.joins(name.equals("concat_ws") ? 0 : 1);
        } else if (name.equals("array_repeat")) {
            call.unless(call.number(1), elements, "elements");
            if (!isSmall(call.type(0))) {
                call.unless(times(call.bytes(0), call.number(1)), text, "text");
            }
        } else if (name.equals("array_insert")) {
            call.unless(new Abs(call.number(1)), elements, "elements");
        } else if (name.equals("sequence")) {
            call.steps();
        } else if (name.equals("stack")) {
            call.unless(call.number(0), elements, "elements");
        } else if (name.equals("approx_count_distinct")) {
            return built;
        } else if (Arrays.asList("to_json", "to_xml", "to_variant_object").contains(name)) {
            if (given.size() > 0 && ((Expression) given.get(0)).resolved()) {
                refuse(name, longestName(call.type(0), false), NAME, "characters in the name of a repeated field");
                if (name.equals("to_xml") && hasVariant(call.type(0))) {
                    // Spark writes level in level by calls in calls, and a thousand end the driver.
                    throw refused("to_xml is given a VARIANT, which may nest deep: take its fields with variant_get,"
                        + " so that its size can be checked");
                }
            }
        } else if (name.equals("aggregate") || name.equals("reduce")) {
            return aggregate(name, builder, given);
        } else if (name.equals("count_min_sketch")) {
            call.countMin();
        } else if (name.startsWith("theta_") || name.startsWith("tuple_")) {
            call.sketches();
        } else if (name.equals("st_geogfromwkb") || name.equals("st_geomfromwkb")) {
            call.nests();
        } else if (name.equals("listagg") || name.equals("string_agg")) {
            Object separator = given.size() > 1 ? valueOf(call.bytes(1)) : null;
            if (separator instanceof Number) {
                refuse(name, ((Number) separator).doubleValue(), NAME, "bytes between two rows");
            }
        } else if (name.equals("get_json_object")) {
            // Spark follows each [0] of a path by calls in calls.
            call.counts(1, "[", PATH, "levels of arrays in its path");
        }
        return call.guarded(built);
    }

    /** One call: its arguments, seen from inside the guard, and the sizes that it must not exceed. */
    private static class Call {
        private final GuardedFunctions limits;
        private final String name;
        private final Function1 builder;
        private final List given;
        private final List inside = new ArrayList();
        private final List held = new ArrayList();
        private final List checks = new ArrayList();
        private final NamedLambdaVariable row;

        Call(GuardedFunctions limits, String name, Function1 builder, List given) {
            this.limits = limits;
            this.name = name;
            this.builder = builder;
            this.given = given;
            int kept = 0;
            for (int number = 0; number < given.size(); number++) {
                Expression each = (Expression) given.get(number);
                if (each.resolved() && !isFixed(each)) {
                    held.add(literal("a" + kept));
                    held.add(each);
                    kept++;
                }
            }
            DataType type = kept == 0 ? null : new CreateNamedStruct(seq(held)).dataType();
            row = kept == 0 ? null : new NamedLambdaVariable(
                "row", type, false, NamedExpression$.MODULE$.newExprId(), new AtomicReference());
            int field = 0;
            for (int number = 0; number < given.size(); number++) {
                Expression each = (Expression) given.get(number);
                if (each.resolved() && !isFixed(each)) {
                    inside.add(new GetStructField(row, field, Option.apply(null)));
                    field++;
                } else {
                    inside.add(each);
                }
            }
        }

        DataType type(int at) {
            return ((Expression) given.get(at)).dataType();
        }

        Expression number(int at) {
            return asDouble((Expression) inside.get(at));
        }

        Expression bytes(int at) {
            return GuardedFunctions.bytes((Expression) inside.get(at));
        }

        /** Adds a size, a double; what the text fixes is compared at once. */
        void unless(Expression size, double limit, String setting) {
            Object known = valueOf(size);
            if (known instanceof Number) {
                refuse(name, ((Number) known).doubleValue(), limit, setting);
            } else if (!isFixed(size)) {
                checks.add(new Object[] {size, new Double(limit), setting});
            }
        }

        void replaces() {
            Object search = valueOf((Expression) given.get(1));
            Object by = given.size() < 3 ? UTF8String.fromString("") : valueOf((Expression) given.get(2));
            if (search instanceof UTF8String && by instanceof UTF8String
                    && ((UTF8String) by).numBytes() <= ((UTF8String) search).numBytes()) {
                return;
            }
            if (collated() != StringType$.MODULE$) {
                // Spark's search by a collation is quadratic, and is not done twice: each byte may be found.
                unless(new Add(bytes(0), times(bytes(0), bytes(2))), limits.text, "text");
                return;
            }
            // What is found, times what it becomes longer.
            Expression without = new StringReplace(string(0), string(1), literal(""));
            Expression found = new Divide(
                new Subtract(bytes(0), GuardedFunctions.bytes(without)),
                new Greatest(seq(Arrays.asList(new Object[] {bytes(1), literal(new Double(1))}))));
            unless(new Add(bytes(0), times(found, bytes(2))), limits.text, "text");
        }

        void replacesPattern() {
            Object by = valueOf((Expression) given.get(2));
            if (by instanceof UTF8String && ((UTF8String) by).numBytes() == 0) {
                return;
            }
            // A pattern may match at every place. A group is part of its match, and so once in the text, but for what
            // a pattern only looks at.
            Expression one = literal(new Double(1));
            Expression places = new Add(bytes(0), one);
            Expression looks = new Or(
                new Contains(string(1), like("?=")), new Contains(string(1), like("?<=")));
            Expression groups = new Subtract(
                bytes(2), GuardedFunctions.bytes(new StringReplace(string(2), like("$"), like(""))));
            Expression seen = times(groups, new If(looks, places, one));
            Expression most = times(places, new Add(new Add(bytes(2), one), seen));
            Expression found = asDouble(
                new Size(new RegExpExtractAll(string(0), string(1), literal(new Integer(0))), false));
            Expression each = new If(looks, found, one);
            Expression exact = new Add(
                times(bytes(0), new Add(times(groups, each), one)), times(found, bytes(2)));
            Expression limit = literal(new Double(limits.text));
            // The pattern is searched twice only where a result could be too large.
            unless(new If(new GreaterThan(most, limit), exact, literal(new Double(0))), limits.text, "text");
        }

        void joins(int separator) {
            Object by = valueOf((Expression) given.get(separator));
            boolean fills = separator == 1 && given.size() > 2;
            Object filler = fills ? valueOf((Expression) given.get(2)) : UTF8String.fromString("");
            if (isShort(by) && isShort(filler)) {
                return;
            }
            // What stands for a NULL of array_join stands at most once for each element.
            Expression between = fills ? new Add(bytes(separator), bytes(2)) : bytes(separator);
            Expression places = literal(new Double(given.size()));
            Expression texts = literal(new Double(0));
            for (int number = 0; number < given.size(); number++) {
                if (number == separator || number > separator && separator == 1) {
                    continue;
                }
                Expression each = (Expression) inside.get(number);
                if (type(number) instanceof ArrayType) {
                    places = new Add(places, known(asDouble(new Size(each, false))));
                }
                texts = new Add(texts, known(bytes(number)));
            }
            unless(new Add(texts, times(places, between)), limits.text, "text");
        }

        private static boolean isShort(Object text) {
            return text instanceof UTF8String && ((UTF8String) text).numBytes() <= SHORT;
        }

        /** Of a sequence: the distance, by the shortest step that the interval may mean. */
        void steps() {
            if (given.size() == 3 && isInterval(type(2))) {
                Object step = valueOf((Expression) given.get(2));
                if (step == null) {
                    throw refused("the step of sequence is an interval that each row computes: write it as a"
                        + " literal (INTERVAL 1 HOUR), so that its size can be checked (`" + MARK
                        + "elements: ...}` in include/project.yaml)");
                }
                distance(seconds(0), seconds(1), literal(new Double(GuardedFunctions.seconds(step, type(2)))));
            } else if (given.size() == 2 && !(type(0) instanceof NumericType)) {
                distance(seconds(0), seconds(1), literal(new Double(86400)));
            } else {
                Expression one = literal(new Double(1));
                distance(number(0), number(1), given.size() == 3 ? number(2) : one);
            }
        }

        private void distance(Expression start, Expression stop, Expression step) {
            // A step of 0 is Spark's to refuse.
            Expression by = new Greatest(seq(Arrays.asList(
                new Object[] {new Abs(step), literal(new Double(1e-6))})));
            unless(new Divide(new Abs(new Subtract(stop, start)), by), limits.elements, "elements");
        }

        private Expression seconds(int at) {
            return asDouble(cast((Expression) inside.get(at), TimestampType$.MODULE$));
        }

        void countMin() {
            Object error = valueOf(number(1));
            Object confidence = valueOf(number(2));
            if (error instanceof Number && confidence instanceof Number) {
                double width = Math.ceil(2 / ((Number) error).doubleValue());
                double depth = Math.ceil(-Math.log1p(-((Number) confidence).doubleValue()) / Math.log(2));
                refuse(name, 8 * width * depth, limits.text, "text");
            }
        }

        void sketches() {
            for (int number = 1; number < given.size(); number++) {
                if (type(number) instanceof IntegralType) {
                    Object exponent = valueOf(number(number));
                    if (exponent instanceof Number) {
                        refuse(name, 16 * Math.pow(2, ((Number) exponent).doubleValue()), limits.text, "text");
                    }
                }
            }
        }

        /** Of a text in an argument. */
        void counts(int at, String part, long limit, String setting) {
            Expression without = new StringReplace(string(at), like(part), like(""));
            unless(new Subtract(bytes(at), GuardedFunctions.bytes(without)), limit, setting);
        }

        /** Spark reads a collection in a collection by a call in a call. Only long values are searched for heads. */
        void nests() {
            Expression heads = literal(new Double(0));
            for (int big = 0; big < 2; big++) {
                for (int dimensions = 0; dimensions < 4; dimensions++) {
                    int kind = 1000 * dimensions + 7;
                    byte low = (byte) kind;
                    byte high = (byte) (kind >> 8);
                    byte[] head = big == 1 ? new byte[] {0, 0, 0, high, low} : new byte[] {1, low, high, 0, 0};
                    Expression without = new StringReplace(
                        string(0), literal(UTF8String.fromBytes(head)), literal(UTF8String.fromString("")));
                    Expression shorter = new Subtract(bytes(0), GuardedFunctions.bytes(without));
                    heads = new Add(heads, new Divide(shorter, literal(new Double(5))));
                }
            }
            Expression isLong = new GreaterThan(bytes(0), literal(new Double(9 * LEVELS)));
            unless(new If(isLong, heads, literal(new Double(0))), LEVELS, "collections in each other");
        }

        private Expression string(int at) {
            return cast((Expression) inside.get(at), collated());
        }

        private Expression like(String text) {
            return cast(literal(text), collated());
        }

        /** By which the call compares: that of any argument that has one. */
        private DataType collated() {
            for (int number = 0; number < given.size(); number++) {
                if (type(number) instanceof StringType && ((StringType) type(number)).collationId() != 0) {
                    return type(number);
                }
            }
            return StringType$.MODULE$;
        }

        /** A format may name an argument at several places. */
        void repeatsArguments() {
            Object format = valueOf((Expression) given.get(0));
            if (!(format instanceof UTF8String)) {
                return;
            }
            int places = 0;
            boolean chosen = false;
            Matcher each = AGAIN.matcher(format.toString());
            while (each.find()) {
                places++;
                chosen = chosen || each.group(1) != null;
            }
            Expression texts = literal(new Double(0));
            for (int number = 1; number < given.size(); number++) {
                texts = new Add(texts, isSmall(type(number)) ? literal(new Double(SHORT)) : known(bytes(number)));
            }
            if (chosen) {
                unless(times(literal(new Double(places)), texts), limits.text, "text");
            }
        }

        /** NULL is left out of a text. */
        private Expression known(Expression size) {
            return new Coalesce(seq(Arrays.asList(new Object[] {size, literal(new Double(0))})));
        }

        Object guarded(Object built) {
            if (checks.isEmpty()) {
                return built;
            }
            Expression body = (Expression) builder.apply(seq(inside));
            for (int number = checks.size() - 1; number >= 0; number--) {
                Object[] check = (Object[]) checks.get(number);
                double limit = ((Double) check[1]).doubleValue();
                body = guard(name, (Expression) check[0], limit, (String) check[2], body);
            }
            return row == null ? body : let(new CreateNamedStruct(seq(held)), row, body);
        }
    }

    /** The accumulator is checked after each element; a number in it does not grow. */
    private Object aggregate(String name, Function1 builder, List given) {
        Expression start = (Expression) given.get(1);
        if (!start.resolved() || isSmall(start.dataType()) || !(given.get(2) instanceof LambdaFunction)) {
            return builder.apply(seq(given));
        }
        LambdaFunction merge = (LambdaFunction) given.get(2);
        UnresolvedNamedLambdaVariable value = new UnresolvedNamedLambdaVariable(
            seq(Arrays.asList(new Object[] {"sql_limits_value"})));
        Expression size = asDouble(new OctetLength(cast(value, StringType$.MODULE$)));
        Expression body = guard(name, size, text, "text", value);
        Expression checked = let(merge.function(), value, body);
        List now = new ArrayList(given);
        now.set(2, new LambdaFunction(checked, merge.arguments(), merge.hidden()));
        return builder.apply(seq(now));
    }

    private static Expression let(Expression value, NamedExpression as, Expression body) {
        Expression one = new CreateArray(seq(Arrays.asList(new Object[] {value})), false);
        LambdaFunction function = new LambdaFunction(body, seq(Arrays.asList(new Object[] {as})), false);
        return new GetArrayItem(new ArrayTransform(one, function), literal(new Integer(0)), false);
    }

    private static Expression guard(
            String name, Expression size, double limit, String setting, Expression otherwise) {
        Expression shown = cast(cast(size, LongType$.MODULE$), StringType$.MODULE$);
        Expression message = new Concat(seq(Arrays.asList(new Object[] {
            literal(name + " would make "), shown, literal(rest(limit, setting))})));
        Expression values = new CreateMap(seq(Arrays.asList(
            new Object[] {literal("errorMessage"), message})), false);
        Expression raised = new RaiseError(literal("USER_RAISED_EXCEPTION"), values);
        Expression over = new GreaterThan(size, literal(new Double(limit)));
        return new If(over, raised, otherwise);
    }

    /** Of an error that is asked for: Spark makes the columns as soon as it makes the call. */
    private static void refuseFine(Expression asked) {
        Object error = valueOf(asDouble(asked));
        if (error instanceof Number) {
            double registers = Math.ceil(2 * Math.log(1.106 / ((Number) error).doubleValue()) / Math.log(2));
            refuse("approx_count_distinct", Math.pow(2, registers) / 10, WORDS, "columns for its relative error");
        }
    }

    private static void refuse(String name, double size, double limit, String setting) {
        if (size > limit) {
            throw refused(name + " would make " + String.format("%.0f", size) + rest(limit, setting));
        }
    }

    private static String rest(double limit, String setting) {
        String most = String.format("%.0f", limit);
        String unit = setting.equals("text") ? "bytes" : setting;
        String limited = " " + unit + ", and the limit is " + most;
        return SETTINGS.contains(setting)
            ? limited + " (`" + MARK + setting + ": ...}` in include/project.yaml)"
            : limited + " (which no setting changes)";
    }

    private static RuntimeException refused(String message) {
        scala.collection.immutable.Map values = new scala.collection.immutable.Map.Map1("errorMessage", message);
        // A checked exception for Java, and none for those who call.
        Platform.throwException(new AnalysisException("USER_RAISED_EXCEPTION", values));
        return null;
    }

    /** The sum of the widths and precisions of a format, each of which Java pads to. */
    private static double widths(String name, Expression format) {
        Object known = valueOf(format);
        if (!(known instanceof UTF8String)) {
            if (isFixed(format)) {
                return 0;
            }
            throw refused("the format of " + name + " is not a literal: write it into the text, so that its size can"
                + " be checked (`" + MARK + "text: ...}` in include/project.yaml)");
        }
        double sum = 0;
        Matcher each = FORMAT.matcher(known.toString());
        while (each.find()) {
            for (int group = 2; group <= 4; group += 2) {
                sum += each.group(group) == null ? 0 : Double.parseDouble(each.group(group));
            }
        }
        return sum;
    }

    /** How long an interval lasts, in seconds, at least. */
    private static double seconds(Object interval, DataType type) {
        if (type instanceof DayTimeIntervalType) {
            return ((Number) interval).doubleValue() / 1e6;
        }
        if (type instanceof YearMonthIntervalType) {
            return ((Number) interval).doubleValue() * 28 * 86400;
        }
        CalendarInterval of = (CalendarInterval) interval;
        double shortest = of.months * 28.0 * 86400 + of.days * 86400.0 + of.microseconds / 1e6;
        double longest = of.months * 31.0 * 86400 + of.days * 86400.0 + of.microseconds / 1e6;
        return shortest * longest <= 0 ? 0 : Math.min(Math.abs(shortest), Math.abs(longest));
    }

    private static boolean isInterval(DataType type) {
        return type instanceof DayTimeIntervalType || type instanceof YearMonthIntervalType
            || type instanceof CalendarIntervalType;
    }

    /** Whether values of the type have a few bytes. */
    private static boolean isSmall(DataType type) {
        if (type instanceof StructType) {
            for (StructField field : ((StructType) type).fields()) {
                if (!isSmall(field.dataType())) {
                    return false;
                }
            }
            return true;
        }
        return type instanceof NumericType || type instanceof BooleanType || type instanceof DatetimeType
            || type instanceof NullType || isInterval(type);
    }

    private static boolean hasVariant(DataType type) {
        if (type instanceof StructType) {
            for (StructField field : ((StructType) type).fields()) {
                if (hasVariant(field.dataType())) {
                    return true;
                }
            }
        }
        return type instanceof VariantType
            || type instanceof ArrayType && hasVariant(((ArrayType) type).elementType())
            || type instanceof MapType && hasVariant(((MapType) type).valueType());
    }

    /** Of the fields that a value may hold many times: each is written with its name. */
    private static int longestName(DataType type, boolean repeated) {
        int longest = 0;
        if (type instanceof StructType) {
            for (StructField field : ((StructType) type).fields()) {
                longest = Math.max(longest, repeated ? field.name().length() : 0);
                longest = Math.max(longest, longestName(field.dataType(), repeated));
            }
        } else if (type instanceof ArrayType) {
            longest = longestName(((ArrayType) type).elementType(), true);
        } else if (type instanceof MapType) {
            longest = longestName(((MapType) type).valueType(), true);
        }
        return longest;
    }

    private static Expression bytes(Expression value) {
        boolean counted = value.dataType() instanceof StringType || value.dataType() instanceof BinaryType;
        return asDouble(new OctetLength(counted ? value : cast(value, StringType$.MODULE$)));
    }

    private static Expression asDouble(Expression value) {
        return cast(value, DoubleType$.MODULE$);
    }

    private static Expression times(Expression one, Expression other) {
        return new Multiply(one, other);
    }

    private static Expression cast(Expression value, DataType type) {
        return new Cast(value, type, Option.apply(SQLConf$.MODULE$.get().sessionLocalTimeZone()));
    }

    /** Whether the text fixes a value; a function that Spark writes out later is none. */
    private static boolean isFixed(Expression value) {
        if (!value.resolved() || !value.foldable()) {
            return false;
        }
        try {
            value.eval(null);
            return true;
        } catch (Throwable cause) {
            return false;
        }
    }

    private static Object valueOf(Expression value) {
        return isFixed(value) ? value.eval(null) : null;
    }

    private static Expression literal(Object value) {
        return Literal$.MODULE$.apply(value);
    }

    private static Seq seq(List of) {
        return CollectionConverters.asScala(of).toSeq();
    }
}
