import io.kvartet.Cache;
import io.kvartet.Codec;
import io.kvartet.KvRuntime;
import io.kvartet.Model;
import io.kvartet.Status;
import io.kvartet.View;
import java.nio.ByteBuffer;
import java.util.List;

/**
 * Shares a cache directory with embed_cache.c and the Rust sample: what another program has stored is loaded and
 * compared, what nobody has is stored. A directory is open in one program at a time.
 * Run: java -Dkvartet.library=.../libkvartet_jni.so -cp CLASSES JavaCache.java [DIRECTORY]
 */
public final class JavaCache {
  static final int TOKENS = 64;
  static final int BLOCK = 16;
  static final long WAIT_MS = 5000;

  public static void main(String[] args) {
    String url = "file:" + (args.length > 0 ? args[0] : "embed_cache.dir") + "?capacity=1GiB";
    Model.Options options = new Model.Options();
    options.id = "digest of the weights".getBytes();
    options.layers = 4;
    options.kvHeads = 2;
    options.kDim = 32;
    options.vDim = 32;
    try (KvRuntime runtime = new KvRuntime(); Model model = new Model(options); Codec codec = new Codec(model, "raw");
        Cache cache = new Cache(runtime, url)) {
      int[] tokens = new int[TOKENS];
      for (int i = 0; i < TOKENS; ++i) tokens[i] = i;
      List<byte[]> keys = model.keys(tokens); // same tokens, model and namespace: same keys as in C and Rust
      View view = View.contiguous(options, TOKENS);
      view.memory = ByteBuffer.allocateDirect(View.bytes(options, TOKENS));
      int found = cache.match(keys);
      if (found > 0) {
        Cache.Moved loaded = cache.load(codec, view, new Codec.Spec(), BLOCK, keys.subList(0, found), WAIT_MS);
        if (loaded.status() != Status.OK) throw new IllegalStateException("load: " + Status.name(loaded.status()));
      }
      boolean same = true;
      int plane = view.memory.capacity() / (2 * options.layers);
      for (int i = 0; i < view.memory.capacity(); ++i) {
        boolean inFound = i % plane < plane / keys.size() * found;
        same &= !inFound || view.memory.get(i) == 0x3c;
        view.memory.put(i, (byte) 0x3c); // what prefill would leave
      }
      cache.store(codec, view, new Codec.Spec(), BLOCK, keys, WAIT_MS);
      System.out.printf("java: %d of %d blocks found in %s; the bytes are %s%n", found, keys.size(), url,
          same ? "equal" : "NOT EQUAL");
      if (!same) System.exit(1);
    }
  }
}
