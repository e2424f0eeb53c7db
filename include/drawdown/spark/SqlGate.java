package drawdown;

import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.ScriptTransformation;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.Option;
import scala.Product;
import scala.collection.Iterable;
import scala.collection.Iterator;

/**
 * Finds in a plan what a user's SQL may not hold, wherever it stands: spark/sql_gate.py says what that is.
 * Spark's own walk passes over parts of a plan (window definitions, for one); this one takes every field.
 */
public class SqlGate {
    /** The first plan below `part`, itself included, whose simple name is not among `allowed`; null if none. */
    public String firstOther(Object part, java.util.Set allowed) {
        if (part instanceof QueryPlan && !allowed.contains(name(part))) {
            return name(part);
        }
        Iterator parts = parts(part);
        while (parts != null && parts.hasNext()) {
            String found = firstOther(parts.next(), allowed);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    /** The first command or script in an analysed plan; null if there is none. */
    public String executes(Object part) {
        if (part instanceof Command || part instanceof ScriptTransformation) {
            return name(part);
        }
        Iterator parts = parts(part);
        while (parts != null && parts.hasNext()) {
            String found = executes(parts.next());
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    private static Iterator parts(Object part) {
        if (part instanceof Iterable) {
            return ((Iterable) part).iterator();
        }
        boolean walked = part instanceof TreeNode || part instanceof Option
            || (part instanceof Product && part.getClass().getName().startsWith("scala.Tuple"));
        return walked ? ((Product) part).productIterator() : null;
    }

    private static String name(Object node) {
        String simple = node.getClass().getSimpleName();
        return simple.endsWith("$") ? simple.substring(0, simple.length() - 1) : simple;
    }
}
