package drawdown;

import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.Option;
import scala.Product;
import scala.Tuple3;
import scala.collection.Iterable;
import scala.collection.Iterator;

/**
 * Finds what a query reads beside the temporary views that it may read: spark/confined_query.py says which.
 * Like SqlGate it takes every field of a plan. Names are compared in small letters, as Spark compares them
 * by default; where it does not, a name that passes here is found in the analysed plan.
 */
public class RelationGate {
    /**
     * The first relation in a parsed text that is neither among the views nor a common table expression in
     * whose scope it stands, as it is written; null if there is none. A view has a name of one part, and no
     * options (`WITH`).
     */
    public String named(Object part, Set views) {
        if (part instanceof UnresolvedRelation) {
            UnresolvedRelation relation = (UnresolvedRelation) part;
            if (!relation.options().isEmpty()) {
                return relation.name() + " WITH (...)";
            }
            boolean single = relation.multipartIdentifier().size() == 1;
            String plain = (String) relation.multipartIdentifier().apply(0);
            return single && views.contains(key(plain)) ? null : relation.name();
        }
        return part instanceof UnresolvedWith ? namedBelow((UnresolvedWith) part, views) : namedIn(part, views);
    }

    /** Each expression sees those before it, and itself if the list is recursive; the query sees all. */
    private String namedBelow(UnresolvedWith with, Set views) {
        Set seen = new HashSet(views);
        Iterator expressions = with.cteRelations().iterator();
        while (expressions.hasNext()) {
            Tuple3 expression = (Tuple3) expressions.next();
            String name = key((String) expression._1());
            Set within = new HashSet(seen);
            if (with.allowRecursion()) {
                within.add(name);
            }
            String found = named(expression._2(), within);
            if (found != null) {
                return found;
            }
            seen.add(name);
        }
        return named(with.child(), seen);
    }

    private String namedIn(Object part, Set views) {
        Iterator parts = parts(part);
        while (parts != null && parts.hasNext()) {
            String found = named(parts.next(), views);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    /**
     * The first leaf of an analysed plan that came through none of the views and is not of the allowed kinds,
     * by the name that it has in the query; null if there is none. What is below a view is not looked at.
     */
    public String read(Object part, Set views, Set allowed) {
        return read(part, views, allowed, null);
    }

    private String read(Object part, Set views, Set allowed, String alias) {
        if (part instanceof View) {
            View view = (View) part;
            TableIdentifier identifier = view.desc().identifier();
            boolean own = view.isTempView() && identifier.database().isEmpty()
                && views.contains(key(identifier.table()));
            return own ? null : identifier.unquotedString();
        }
        if (part instanceof SubqueryAlias) {
            alias = ((SubqueryAlias) part).identifier().toString();
        }
        if (part instanceof LogicalPlan && ((LogicalPlan) part).children().isEmpty()
            && !allowed.contains(kind(part))) {
            return alias == null ? kind(part) : alias;
        }
        Iterator parts = parts(part);
        while (parts != null && parts.hasNext()) {
            String found = read(parts.next(), views, allowed, alias);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    private static String key(String name) {
        return name.toLowerCase(Locale.ROOT);
    }

    private static Iterator parts(Object part) {
        if (part instanceof Iterable) {
            return ((Iterable) part).iterator();
        }
        boolean walked = part instanceof TreeNode || part instanceof Option
            || (part instanceof Product && part.getClass().getName().startsWith("scala.Tuple"));
        return walked ? ((Product) part).productIterator() : null;
    }

    private static String kind(Object node) {
        String simple = node.getClass().getSimpleName();
        return simple.endsWith("$") ? simple.substring(0, simple.length() - 1) : simple;
    }
}
