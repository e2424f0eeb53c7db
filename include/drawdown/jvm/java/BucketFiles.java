package drawdown;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.UnsupportedEncodingException;
import java.net.URLDecoder;
import java.util.ArrayList;
import java.util.List;

import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.hadoop.fs.s3a.S3AFileSystem;
import org.apache.hadoop.fs.s3a.S3ListRequest;
import org.apache.hadoop.util.functional.RemoteIterators;
import org.apache.spark.sql.SparkSession;
import scala.Option;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Request;

/**
 * Hadoop's S3A, except that a file source whose names rise with time lists from a name on: `fs.s3a.impl`.
 *
 * Spark lists all files of a source in each run, a request for every thousand. Where the source's pipeline says
 * `order: name`, a setting of its session has the name from which on files may be new (sources/files/rising.py);
 * each folder on the way to it is listed from there (start-after), all others whole. Where it says `arrivals`,
 * what was reported stands for the listing (ArrivedFiles). Only listings of the source itself: what a transform
 * lists in the same folder is whole.
 */
public class BucketFiles extends S3AFileSystem {
    private static final String SETTING = "drawdown.files.from";
    private static final String ARRIVED = "drawdown.files.arrived";

    /** Of a source that is told what has arrived, its folders are what is in these files' paths. */
    public FileStatus[] listStatus(Path path) throws FileNotFoundException, IOException {
        List arrived = arrived(path, false);
        if (arrived == null) {
            return super.listStatus(path);
        }
        FileStatus[] statuses = new FileStatus[arrived.size()];
        for (int i = 0; i < statuses.length; i++) {
            statuses[i] = (FileStatus) arrived.get(i);
        }
        return statuses;
    }

    /** The same for a whole tree, which is how Spark lists a folder of S3. */
    public RemoteIterator listFiles(Path path, boolean recursive) throws FileNotFoundException, IOException {
        List arrived = recursive ? arrived(path, true) : null;
        if (arrived == null) {
            return super.listFiles(path, recursive);
        }
        List located = new ArrayList();
        for (int i = 0; i < arrived.size(); i++) {
            located.add(new LocatedFileStatus((FileStatus) arrived.get(i), new BlockLocation[0]));
        }
        return RemoteIterators.remoteIteratorFromIterable(located);
    }

    private static List arrived(Path path, boolean toTheBottom) {
        String[] names = isOfFileSource() ? setting(ARRIVED).split(" ") : new String[0];
        for (int i = 0; i < names.length; i++) {
            List arrived = ArrivedFiles.below(names[i], path, toTheBottom);
            if (arrived != null) {
                return arrived;
            }
        }
        return null;
    }

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
        String[] entries = setting(SETTING).split(" ");
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

    /** Return a setting of the query's session; empty without one. */
    private static String setting(String name) {
        Option session = SparkSession.getActiveSession();
        return session.isEmpty() ? "" : ((SparkSession) session.get()).conf().get(name, "");
    }

    private static String decoded(String text) {
        try {
            return URLDecoder.decode(text, "UTF-8");
        } catch (UnsupportedEncodingException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
