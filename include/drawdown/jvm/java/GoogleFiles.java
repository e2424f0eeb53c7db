package drawdown;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.URI;
import java.util.Iterator;
import java.util.Map;

import com.google.cloud.hadoop.repackaged.ossgcs.com.google.cloud.NoCredentials;
import com.google.cloud.hadoop.repackaged.ossgcs.com.google.cloud.storage.Storage;
import com.google.cloud.hadoop.repackaged.ossgcs.com.google.cloud.storage.StorageException;
import com.google.cloud.hadoop.repackaged.ossgcs.com.google.cloud.storage.StorageOptions;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.gs.GoogleHadoopFileSystem;

/**
 * Hadoop's client for Google Cloud Storage, with settings for each bucket, as S3A has them, and with an endpoint:
 * `fs.gs.impl`.
 *
 * `fs.gs.bucket.NAME.KEY` is what `fs.gs.KEY` is for this bucket. Hadoop's client knows no other server than
 * Google's: for `fs.gs.endpoint` its inner client, which is in a private field, is replaced by one that does. With
 * `fs.gs.endpoint.without.key` that one sends no key (`fs.gs.auth.type: UNAUTHENTICATED` ends in a
 * NullPointerException in Hadoop 3.5.0).
 */
public class GoogleFiles extends GoogleHadoopFileSystem {
    public void initialize(URI address, Configuration conf) throws IOException {
        Configuration own = new Configuration(conf);
        String ofBucket = "fs.gs.bucket." + address.getAuthority() + ".";
        Iterator entries = conf.getPropsWithPrefix(ofBucket).entrySet().iterator();
        while (entries.hasNext()) {
            Map.Entry entry = (Map.Entry) entries.next();
            own.set("fs.gs." + entry.getKey(), (String) entry.getValue());
        }
        super.initialize(address, own);
        String endpoint = own.get("fs.gs.endpoint");
        if (endpoint != null) {
            reach(endpoint, own.getBoolean("fs.gs.endpoint.without.key", false));
        }
    }

    /** Whether a write has failed because the object is there, or another one than when the write began. */
    static boolean isConflict(Throwable failed) {
        for (Throwable each = failed; each != null; each = each.getCause()) {
            if (each instanceof StorageException && ((StorageException) each).getCode() == 412) {
                return true;
            }
        }
        return failed instanceof FileAlreadyExistsException;
    }

    private void reach(String endpoint, boolean withoutKey) throws IOException {
        try {
            Object files = field(GoogleHadoopFileSystem.class, "gcsFs").get(this);
            Object objects = field(files.getClass(), "gcs").get(files);
            Field client = field(objects.getClass(), "storage");
            StorageOptions before = (StorageOptions) ((Storage) client.get(objects)).getOptions();
            StorageOptions.Builder options = (StorageOptions.Builder) before.toBuilder();
            options.setHost(endpoint);
            if (withoutKey) {
                options.setCredentials(NoCredentials.getInstance());
            }
            client.set(objects, ((StorageOptions) options.build()).getService());
        } catch (ReflectiveOperationException other) {
            throw new IOException("this version of Hadoop's client for Google Cloud Storage takes no endpoint", other);
        }
    }

    private static Field field(Class holder, String name) throws NoSuchFieldException {
        Field found = holder.getDeclaredField(name);
        found.setAccessible(true);
        return found;
    }
}
