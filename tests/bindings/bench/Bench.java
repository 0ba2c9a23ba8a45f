import io.kvartet.Cache;
import io.kvartet.Codec;
import io.kvartet.KvRuntime;
import io.kvartet.Model;
import io.kvartet.View;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.List;

/** bench.c in Java. */
public final class Bench {
  static final int COUNT = 128;
  static final int ROUNDS = 80;
  static final int BLOCK = 16;

  public static void main(String[] args) throws Exception {
    Model.Options o = new Model.Options();
    o.id = "bench".getBytes();
    o.layers = 4;
    o.kvHeads = 4;
    o.kDim = 64;
    o.vDim = 64;
    int[] tokens = new int[COUNT * BLOCK];
    for (int i = 0; i < tokens.length; ++i) tokens[i] = i;
    View view = View.contiguous(o, tokens.length);
    view.memory = ByteBuffer.allocateDirect(View.bytes(o, tokens.length));
    for (int i = 0; i < view.memory.capacity(); ++i) view.memory.put(i, (byte) ((i * 7 + i / 251) & 0x3f));
    try (KvRuntime runtime = new KvRuntime(); Model model = new Model(o); Codec codec = new Codec(model, "raw");
        Cache cache = new Cache(runtime, "mem:?capacity=256MiB")) {
      List<byte[]> keys = model.keys(tokens);
      ByteBuffer[] frames = new ByteBuffer[COUNT];
      for (int i = 0; i < COUNT; ++i) {
        Codec.Spec spec = new Codec.Spec();
        spec.tokenBegin = (long) i * BLOCK;
        spec.tokenCount = BLOCK;
        spec.key = keys.get(i);
        byte[] frame = codec.encode(view, spec).frame();
        frames[i] = ByteBuffer.allocateDirect(frame.length).put(frame).flip();
      }
      ByteBuffer buffer = ByteBuffer.allocateDirect(frames[0].capacity() + 4096);
      BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
      while (lines.readLine() != null) {
        long took = 0;
        for (int round = 0; round < ROUNDS; ++round) {
          long begun = System.nanoTime();
          for (int i = 0; i < COUNT; ++i) {
            cache.put(keys.get(i), frames[i]);
            cache.get(keys.get(i), buffer);
          }
          took += System.nanoTime() - begun;
          cache.remove(keys);
        }
        System.out.println(took);
      }
    }
  }
}
