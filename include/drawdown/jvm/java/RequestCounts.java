package drawdown;

import java.util.Map;
import java.util.concurrent.atomic.AtomicLongArray;

import software.amazon.awssdk.core.interceptor.Context;
import software.amazon.awssdk.core.interceptor.ExecutionAttributes;
import software.amazon.awssdk.core.interceptor.ExecutionInterceptor;
import software.amazon.awssdk.http.SdkHttpRequest;

/**
 * Counts what this JVM sends to S3, each attempt, by what is paid for: `fs.s3a.audit.execution.interceptors`.
 */
public class RequestCounts implements ExecutionInterceptor {
    private static final String[] KINDS = {"list", "get", "head", "put", "delete"};
    private static final AtomicLongArray COUNTS = new AtomicLongArray(KINDS.length);

    public void beforeTransmission(Context.BeforeTransmission sent, ExecutionAttributes attributes) {
        SdkHttpRequest request = sent.httpRequest();
        COUNTS.incrementAndGet(kind(request.method().name(), request.rawQueryParameters()));
    }

    /** Return the counts since the JVM began, as `list=1 get=2`. */
    public static String counted() {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < KINDS.length; i++) {
            text.append(KINDS[i]).append('=').append(COUNTS.get(i)).append(' ');
        }
        return text.toString().trim();
    }

    private static int kind(String method, Map query) {
        if (method.equals("GET")) {
            boolean lists = query.containsKey("list-type") || query.containsKey("uploads");
            return lists ? 0 : 1;
        }
        if (method.equals("HEAD")) {
            return 2;
        }
        boolean deletes = method.equals("DELETE") || method.equals("POST") && query.containsKey("delete");
        return deletes ? 4 : 3;
    }
}
