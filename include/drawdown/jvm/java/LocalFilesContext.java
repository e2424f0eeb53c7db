package drawdown;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;

/** The same for Hadoop's FileContext, which Spark writes checkpoints with: `fs.AbstractFileSystem.file.impl`. */
public class LocalFilesContext extends ChecksumFs {
    public LocalFilesContext(URI uri, Configuration conf) throws IOException, URISyntaxException {
        super(new Raw(conf));
    }

    private static class Raw extends DelegateToFileSystem {
        Raw(Configuration conf) throws IOException, URISyntaxException {
            super(URI.create("file:///"), new RawLocalFiles(), conf, "file", false);
        }

        public int getUriDefaultPort() {
            return -1;
        }

        public boolean isValidName(String name) {
            return true;
        }
    }
}
