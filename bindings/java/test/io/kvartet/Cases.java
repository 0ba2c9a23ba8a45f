package io.kvartet;

import static io.kvartet.Kit.WAIT;
import static io.kvartet.Kit.check;
import static io.kvartet.Kit.emptyView;
import static io.kvartet.Kit.equal;
import static io.kvartet.Kit.frames;
import static io.kvartet.Kit.half;
import static io.kvartet.Kit.hex;
import static io.kvartet.Kit.modelOptions;
import static io.kvartet.Kit.refused;
import static io.kvartet.Kit.same;
import static io.kvartet.Kit.spec;
import static io.kvartet.Kit.tokens;
import static io.kvartet.Kit.toyOptions;
import static io.kvartet.Kit.viewOf;

import io.kvartet.internal.generated.Flat;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/** One method a case of tests/bindings/cases.toml, but for those of {@link Lifetimes} and {@link BadInput}. */
final class Cases {
  private Cases() {}

  static void versionAndAbi() {
    check(Kvartet.version().startsWith("0."), Kvartet.version());
    equal((long) Kvartet.abiVersion(), Flat.kvtf_header_abi_version());
    Native.checkAbi(0x00010002, 0x00010001);
    refused(Status.VERSION, () -> Native.checkAbi(0x00020000, 0x00010000), "2.0", "1.0");
    refused(Status.VERSION, () -> Native.checkAbi(2, 1), "0.2", "0.1");
  }

  static void defaultsAreTheLibrarys() {
    equal(new KvRuntime.Options().threads, 2);
    equal(new Model.Options().element, Kvartet.F16);
    equal(new Model.Options().ropeMagnitude, 1.0);
    equal(new Codec.Options().groupTokens, 32);
    equal(new Node.Options().stallMs, 2000);
    equal(new Verifier.Options().draftLength, 8);
  }

  static void unknownStatusKeepsItsNumber() {
    equal(new KvartetException(-1234, "x", "y").status(), -1234);
    equal(Status.name(-1234), "KVT_STATUS_UNKNOWN");
    equal(Status.name(Status.TIMEOUT), "KVT_ERR_TIMEOUT");
    equal(Status.NOT_FOUND, -20);
  }

  static void deleteTree(Path root) throws Exception {
    try (var paths = Files.walk(root)) {
      for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) Files.delete(path);
    }
  }

  static void putGetRoundTrip() throws Exception {
    Path directory = Files.createTempDirectory("kvt-java");
    try (KvRuntime r = new KvRuntime(); Model m = new Model(modelOptions())) {
      Kit.Frames f = frames(m, 3);
      for (String url : List.of("mem:?capacity=16MiB", "file:" + directory)) {
        try (Cache c = new Cache(r, url)) {
          c.put(f.keys().get(0), f.frames().get(0));
          Cache.Moved moved = c.putAll(f.keys().subList(1, 3), f.frames().subList(1, 3), WAIT);
          equal(moved.status(), Status.OK);
          equal(moved.results().length, 2);
          for (int i = 0; i < 3; ++i) same(c.get(f.keys().get(i)), f.frames().get(i));
          equal(c.stats().frames(), 3L);
          equal(c.stats().puts(), 3L);
          ByteBuffer direct = ByteBuffer.allocateDirect(f.frames().get(0).length + 8);
          direct.position(8);
          equal(c.get(f.keys().get(1), direct), f.frames().get(1).length);
          byte[] copy = new byte[f.frames().get(1).length];
          direct.get(8, copy);
          same(copy, f.frames().get(1));
        }
      }
    } finally {
      deleteTree(directory);
    }
  }

  static void withCache(java.util.function.BiConsumer<Cache, Model> body) {
    try (KvRuntime r = new KvRuntime(); Model m = new Model(modelOptions()); Cache c = new Cache(r, "mem:?capacity=16MiB")) {
      body.accept(c, m);
    }
  }

  static void matchPrefix() {
    withCache((c, m) -> {
      Kit.Frames f = frames(m, 4);
      for (int i : new int[] {0, 1, 3}) c.put(f.keys().get(i), f.frames().get(i));
      equal(c.match(f.keys()), 2);
      equal(c.match(List.of()), 0);
      equal(c.remove(f.keys().subList(0, 3)), 2);
      equal(c.match(f.keys()), 0);
    });
  }

  static void missingKey() {
    withCache((c, m) -> {
      byte[] key = new byte[Kvartet.KEY_BYTES];
      key[0] = 1;
      KvartetException e = refused(Status.NOT_FOUND, () -> c.get(key), "KVT_ERR_NOT_FOUND");
      check(!e.getMessage().endsWith(": "), "no text");
    });
  }

  static void storeLoadView() {
    withCache((c, m) -> {
      try (Codec codec = new Codec(m, "raw")) {
        List<byte[]> keys = m.keys(tokens(64));
        View made = viewOf(64);
        View loaded = emptyView(64);
        equal(c.store(codec, made, new Codec.Spec(), 16, keys.subList(0, 3), WAIT).status(), Status.OK);
        Cache.Moved moved = c.load(codec, loaded, new Codec.Spec(), 16, keys, WAIT);
        equal(moved.status(), Status.NOT_FOUND);
        equal(moved.results()[2], Status.OK);
        equal(moved.results()[3], Status.NOT_FOUND);
        int plane = made.memory.capacity() / 4;
        for (int p = 0; p < 4; ++p) {
          for (int i = 0; i < plane * 3 / 4; ++i) {
            check(made.memory.get(p * plane + i) == loaded.memory.get(p * plane + i), "plane " + p + " differs");
          }
        }
      }
    });
  }

  static void asyncEventDescriptor() {
    withCache((c, m) -> {
      Kit.Frames f = frames(m, 2);
      check(c.eventFd() >= 0, "no descriptor");
      check(!c.awaitEvent(0), "an event without an operation");
      try (Operation o = c.submitPut(f.keys(), f.frames(), WAIT)) {
        check(c.awaitEvent(WAIT), "no event");
        Operation.Completion[] done = c.poll(8);
        equal(done.length, 1);
        equal(done[0].id(), o.id());
        equal(done[0].itemsOk(), 2L);
        check(!c.awaitEvent(0), "the event stays");
        equal(o.await(0).itemsOk(), 2L);
        check(Arrays.equals(o.results(), new int[] {0, 0}), "results");
      }
    });
  }

  static void asyncLoadIntoMemory() {
    withCache((c, m) -> {
      View v = viewOf(32);
      byte[] bytes = Kit.bytes(v);
      List<byte[]> keys = m.keys(tokens(32));
      try (Codec codec = new Codec(m, "raw"); Memory from = new Memory(bytes.length); Memory to = new Memory(bytes.length)) {
        from.write(0, bytes);
        try (Operation o = c.submitStore(codec, v, from, new Codec.Spec(), 16, keys, WAIT)) {
          refused(Status.BUSY, from::close);
          o.await(WAIT);
        }
        try (Operation o = c.submitLoad(codec, v, to, new Codec.Spec(), 16, keys, WAIT)) {
          o.await(WAIT);
        }
        byte[] got = new byte[bytes.length];
        to.read(0, got);
        same(got, bytes);
        refused(Status.OUT_OF_RANGE, () -> to.read(1, got), "offset 1");
      }
    });
  }

  static void operationCancel() {
    withCache((c, m) -> {
      Kit.Frames f = frames(m, 2);
      for (int i = 0; i < 50; ++i) {
        try (Operation o = c.submitPut(f.keys(), f.frames(), WAIT)) {
          if (i % 2 == 0) cancelAndAwait(o);
        }
      }
      c.put(f.keys().get(0), f.frames().get(0));
      equal(c.match(f.keys().subList(0, 1)), 1);
    });
  }

  private static void cancelAndAwait(Operation o) {
    try {
      o.cancel();
    } catch (KvartetException e) {
      equal(e.status(), Status.NOT_FOUND);
    }
    try {
      o.await(WAIT);
    } catch (KvartetException e) {
      equal(e.status(), Status.CANCELLED);
    }
  }

  private interface PairBody {
    void run(Cache cache, Model model, Node client, Peer peer);
  }

  /** A node that serves a cache, and a peer of it. */
  private static void withPair(PairBody body) {
    Node.Options listening = new Node.Options();
    listening.listen = "tcp://127.0.0.1:0";
    withCache((c, m) -> {
      try (KvRuntime r = new KvRuntime(); Node server = new Node(r, m, listening);
          Node client = new Node(r, m, new Node.Options())) {
        server.serve(c);
        try (Peer peer = client.connect(server.url(), WAIT)) {
          body.run(c, m, client, peer);
        }
      }
    });
  }

  static void pullBetweenNodes() {
    withPair((c, m, client, peer) -> {
      Kit.Frames f = frames(m, 3);
      c.put(f.keys().get(0), f.frames().get(0));
      c.put(f.keys().get(2), f.frames().get(2));
      Peer.Pulled pulled = peer.pull(f.keys(), f.frames().get(0).length + 4096, WAIT);
      equal(pulled.status(), Status.NOT_FOUND);
      equal(pulled.results()[1], Status.NOT_FOUND);
      same(pulled.frames().get(0), f.frames().get(0));
      check(pulled.frames().get(1) == null, "a frame from nowhere");
      same(pulled.frames().get(2), f.frames().get(2));
      try (Operation o = peer.submitPull(f.keys().subList(0, 1), f.frames().get(0).length, WAIT)) {
        check(client.awaitEvent(WAIT), "no event");
        equal(client.poll(4)[0].id(), o.id());
        same(o.frame(0), f.frames().get(0));
        refused(Status.OUT_OF_RANGE, () -> o.frame(1));
      }
      equal(client.stats().framesReceived(), 3L);
    });
  }

  static void pushBetweenNodes() {
    withPair((c, m, client, peer) -> {
      Kit.Frames f = frames(m, 3);
      equal(peer.push(f.keys().subList(0, 2), f.frames().subList(0, 2), WAIT).status(), Status.OK);
      try (Operation o = peer.submitPush(f.keys().subList(2, 3), f.frames().subList(2, 3), WAIT)) {
        o.await(WAIT);
      }
      equal(c.match(f.keys()), 3);
    });
  }

  static void handshakeRefused() {
    Node.Options listening = new Node.Options();
    listening.listen = "tcp://127.0.0.1:0";
    Node.Options other = new Node.Options();
    other.digest = Kvartet.namespaceDigest("tenant-a".getBytes(), null);
    try (KvRuntime r = new KvRuntime(); Model m = new Model(modelOptions()); Node server = new Node(r, m, listening);
        Node client = new Node(r, m, other)) {
      refused(Status.MISMATCH, () -> client.connect(server.url(), WAIT), "namespace");
    }
  }

  static void keysEqualVectors() {
    Model.Options o = new Model.Options();
    o.id = new byte[32];
    for (int i = 0; i < 32; ++i) o.id[i] = (byte) i;
    o.layers = 30;
    o.kvHeads = 3;
    o.kDim = 64;
    o.vDim = 64;
    o.ropeStyle = Kvartet.ROPE_INTERLEAVED;
    o.ropeDims = 64;
    o.ropeBase = 100000;
    try (Model m = new Model(o)) {
      equal(m.canonical().length, 112);
      equal(hex(m.fingerprint()), "20259ad5389b8b5f1ce670669da7a0da");
      vector(m, new Model.Naming(), "56c921061e63c97331e3a59715d1099a665585aa3880dafac5107aae839bb03b",
          "0b132405f5122541ba08cd14e16acce55ef14bfd06b0e952fb5c90d00d120886");
      Model.Naming tenant = new Model.Naming();
      tenant.namespace = "tenant-a".getBytes();
      tenant.salt = "pepper".getBytes();
      vector(m, tenant, "1d31bfde7267df240436194b55b0735f636a8218c8c2f38cf4dab62a01094bd0",
          "c26272a154c561e5a041eb28efb78c07009e47ff142c443de5332049b27d4c6d");
      Model.Naming extras = new Model.Naming();
      extras.extras = List.of(new Model.Extra(3, new byte[] {1, 2, 3}), new Model.Extra(17, "image".getBytes()));
      vector(m, extras, "5d3d84a4c100854c48814e6d931274f3d1233706e424cb35b7a021f63a1b9f8a",
          "bfca45666621d39303a958484e5f1932060a3e9344828b9f321681b2ce45b0e9");
    }
    equal(hex(Kvartet.namespaceDigest(null, null)), "97f3e77796337b15dde4bf6fb3a6befa");
    equal(hex(Kvartet.namespaceDigest("tenant-a".getBytes(), "pepper".getBytes())), "0f4d37556fc49ac97e98b140c1a41532");
    hashes(null, null, "15310707395893867146", "13769157705258532664");
    hashes("my-lora".getBytes(), null, "7774427462321301335", "13956809587245606139");
    hashes(null, "tenant-a".getBytes(), "2130915519417463704", "13676355973429745432");
  }

  private static void vector(Model m, Model.Naming naming, String first, String second) {
    List<byte[]> keys = m.keys(tokens(32), naming);
    equal(keys.size(), 2);
    equal(hex(keys.get(0)), first + "10000000");
    equal(hex(keys.get(1)), second + "10000000");
    naming.blockTokens = 32;
    keys = m.keys(tokens(32), naming);
    equal(keys.size(), 1);
    equal(hex(keys.get(0)), second + "20000000");
  }

  private static void hashes(byte[] adapter, byte[] namespace, String... want) {
    long[] hashes = Kvartet.blockHashes(tokens(32), 16, adapter, namespace);
    equal(hashes.length, 2);
    for (int i = 0; i < 2; ++i) equal(Long.toUnsignedString(hashes[i]), want[i]);
  }

  static void codecLossyAndDescribed() {
    try (Model m = new Model(modelOptions()); Codec codec = new Codec(m, "kivi4")) {
      View v = viewOf(64);
      v.memory.put(0, (byte) 0).put(1, (byte) 0x7e); // a NaN
      Codec.Encoded encoded = codec.encode(v, spec(0, 64, null));
      equal(encoded.report().nonfinite(), 1L);
      equal(encoded.report().frameBytes(), (long) encoded.frame().length);
      check(encoded.frame().length < v.memory.capacity() / 2, "frame of " + encoded.frame().length + " bytes");
      Kvartet.verifyFrame(ByteBuffer.wrap(encoded.frame()));
      check(Kvartet.describeFrame(ByteBuffer.wrap(encoded.frame())).contains("kivi4"), "description");
      View loaded = emptyView(64);
      equal(codec.decode(ByteBuffer.wrap(encoded.frame()), loaded, spec(0, 64, null)).decodedBytes(),
          (long) v.memory.capacity());
      for (int i = 2; i < v.memory.capacity(); i += 2) {
        check(Math.abs(half(v.memory, i) - half(loaded.memory, i)) < 0.15, "element " + i / 2);
      }
    }
  }

  static int statusOf(Runnable call) {
    try {
      call.run();
      return Status.OK;
    } catch (KvartetException e) {
      return e.status();
    }
  }

  static void wrongSize() {
    withCache((c, m) -> {
      Kit.Frames f = frames(m, 1);
      byte[] key = f.keys().get(0);
      byte[] frame = f.frames().get(0);
      c.put(key, frame);
      ByteBuffer small = ByteBuffer.allocateDirect(frame.length - 1);
      refused(Status.BUFFER_TOO_SMALL, () -> c.get(key, small), String.valueOf(frame.length));
      for (int i = 0; i < small.capacity(); ++i) check(small.get(i) == 0, "the buffer was written");
      try {
        c.get(key, ByteBuffer.allocate(frame.length));
        throw new AssertionError("a buffer of the heap was accepted");
      } catch (IllegalArgumentException e) {
        check(e.getMessage().contains("direct"), e.getMessage());
      }
      refused(Status.BUFFER_TOO_SMALL, () -> c.on("put", (h, e) ->
          Flat.kvtf_cache_put(h, key, frame, Native.record(frame.length), new byte[3], 100, e)), "results");
    });
  }

  static void verifierToyEngine() {
    try (Verifier v = new Verifier(toyOptions(6))) {
      Kit.Toy toy = new Kit.Toy();
      refused(Status.TIMEOUT, () -> v.run(toy)); // the first load fails and is asked for again
      v.run(toy);
      toy.checkCommitted();
      Verifier.Stats stats = v.stats();
      equal(stats.committed(), (long) Kit.Toy.TOKENS);
      check(stats.accepted() > 0 && stats.accepted() < stats.drafted() && stats.acceptance() > 0
          && stats.acceptance() < 1, stats.toString());
      refused(Status.INVALID_ARGUMENT, v::committed);
    }
  }

  static void fidelityClassify() {
    float[] rows = {1, 2, 3, 3, 2, 1, 1, 2, 3, 3, 2, 1};
    int[] widths = {4, 4, 2, 2};
    int[] places = {0, 1, 0, 1};
    equal(Verifier.classify(rows, rows, 3, widths, places), new Verifier.Fidelity(Verifier.FIDELITY_C, 0));
    float[] near = rows.clone();
    near[0] += 0.25f;
    near[3] += 0.125f;
    equal(Verifier.classify(rows, near, 3, widths, places), new Verifier.Fidelity(Verifier.FIDELITY_B, 0.5));
    refused(Status.INVALID_ARGUMENT, () -> Verifier.classify(rows, Arrays.copyOf(near, 6), 3, widths, places));
  }

  static void meterJson() {
    try (KvRuntime r = new KvRuntime(); Meter meter = new Meter(r)) {
      for (int i = 0; i < 3; ++i) {
        Meter.Request request = meter.begin("raw");
        request.part(Meter.PART_QUEUE);
        request.part(Meter.PART_PREFILL);
        request.count(Meter.TOKENS_PROMPT, 100);
        request.firstToken();
        refused(Status.INVALID_ARGUMENT, () -> request.part(Meter.PART_PREFILL));
        request.end();
        refused(Status.NOT_FOUND, request::end);
      }
      meter.count(Meter.CHECKSUMS, 7);
      refused(Status.INVALID_ARGUMENT, () -> meter.count(999, 1));
      String json = meter.json().replace(" ", "");
      for (String part : List.of("\"way\":\"raw\"", "\"requests\":3", "\"tokens_prompt\":300", "\"checksums\":7")) {
        check(json.contains(part), json + " lacks " + part);
      }
      check(!meter.advice().isEmpty(), "no advice");
    }
  }
}
