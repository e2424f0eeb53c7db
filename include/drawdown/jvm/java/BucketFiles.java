package drawdown;

import java.io.UnsupportedEncodingException;
import java.net.URLDecoder;

import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.S3ListRequest;
import org.apache.spark.sql.SparkSession;
import scala.Option;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Request;

/**
 * Hadoop's S3A, except that a file source whose names rise with time lists from a name on: `fs.s3a.impl`.
 *
 * Spark lists all files of a source in each run, a request for every thousand. Where the source's pipeline says
 * `order: name`, a setting of its session has the name from which on files may be new (sources/files/rising.py);
 * each folder on the way to it is listed from there (start-after), all others whole. Only listings of the source
 * itself: what a transform lists in the same folder is whole.
 */
public class BucketFiles extends S3AFileSystem {
    private static final String SETTING = "drawdown.files.from";

    public S3ListRequest createListObjectsRequest(String key, String delimiter) {
        S3ListRequest whole = super.createListObjectsRequest(key, delimiter);
        if (whole.isV1() || !isOfFileSource()) {
            return whole;
        }
        String after = startAfter(key);
        if (after == null) {
            return whole;
        }
        ListObjectsV2Request.Builder request = (ListObjectsV2Request.Builder) whole.getV2().toBuilder();
        request.startAfter(after);
        return S3ListRequest.v2((ListObjectsV2Request) request.build());
    }

    /** Whether Spark's file source is listing in this thread: at its start, or when its columns are found. */
    private static boolean isOfFileSource() {
        StackTraceElement[] frames = new Throwable().getStackTrace();
        for (int i = 0; i < frames.length; i++) {
            String name = frames[i].getClassName();
            if (name.endsWith(".FileStreamSource") && frames[i].getMethodName().equals("fetchAllFiles")) {
                return true;
            }
            if (name.endsWith(".DataSource") && frames[i].getMethodName().equals("sourceSchema")) {
                return true;
            }
        }
        return false;
    }

    /** Return the key behind which this folder, whose key ends in a slash, has what may be new; null for all. */
    private String startAfter(String folder) {
        Option session = SparkSession.getActiveSession();
        if (session.isEmpty()) {
            return null;
        }
        String setting = ((SparkSession) session.get()).conf().get(SETTING, "");
        String[] entries = setting.split(" ");
        for (int i = 0; i < entries.length; i++) {
            String[] parts = entries[i].split("=");
            if (parts.length != 3 || !getBucket().equals(decoded(parts[0]))) {
                continue;
            }
            String root = decoded(parts[1]);
            String from = decoded(parts[2]);
            if (folder.startsWith(root) && from.startsWith(folder) && from.length() > folder.length()) {
                int end = from.indexOf('/', folder.length());
                // A folder itself comes before what is in it, so it stays in the listing.
                return end < 0 ? from : from.substring(0, end);
            }
        }
        return null;
    }

    private static String decoded(String text) {
        try {
            return URLDecoder.decode(text, "UTF-8");
        } catch (UnsupportedEncodingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
