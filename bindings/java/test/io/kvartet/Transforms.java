package io.kvartet;

import static io.kvartet.Kit.WAIT;
import static io.kvartet.Kit.check;
import static io.kvartet.Kit.emptyView;
import static io.kvartet.Kit.equal;
import static io.kvartet.Kit.frames;
import static io.kvartet.Kit.half;
import static io.kvartet.Kit.modelOptions;
import static io.kvartet.Kit.refused;
import static io.kvartet.Kit.same;
import static io.kvartet.Kit.spec;
import static io.kvartet.Kit.viewOf;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/** The cases about profiles, rotary embeddings and streams. */
final class Transforms {
  private Transforms() {}

  /** Rows from 1 to 2 that vary in few directions, as those of a text do. */
  private static View document(int n, int seed) {
    View v = emptyView(n);
    int row = (int) (v.tokenStride[0] / 2);
    for (int i = 0; i < v.memory.capacity() / 2; ++i) {
      int token = i / row % n;
      int channel = i % row;
      int mantissa = 512 + (token * seed * 13 % 31 - 15) * (channel % 17 - 8) * 4;
      v.memory.put(2 * i, (byte) mantissa);
      v.memory.put(2 * i + 1, (byte) (0x3c | mantissa >> 8));
    }
    return v;
  }

  private static Calibration calibrated(Model m) {
    Calibration c = new Calibration(m, new Calibration.Options());
    for (int seed = 1; seed <= 2; ++seed) c.add(document(128, seed), 0, 128);
    return c;
  }

  private static Codec transform(Model m, byte[] profile, int ratio) {
    Codec.Options o = new Codec.Options();
    o.profile = profile;
    o.ratio = ratio;
    return new Codec(m, "transform", o);
  }

  static void calibrateAndTransform() {
    equal(new Calibration.Options().ratioMin, 4);
    equal(new Codec.Options().ratio, 0);
    try (Model m = new Model(modelOptions()); Calibration calibration = calibrated(m);
        Calibration restored = Calibration.restore(m, calibration.save())) {
      byte[] profile = calibration.finish();
      equal(calibration.progress(), new Calibration.Info(2, 2 * 124, 0));
      same(restored.finish(), profile);
      check(Profile.describe(profile).contains("groups"), Profile.describe(profile));
      try (Codec codec = transform(m, profile, 8)) {
        View v = document(128, 1);
        View loaded = emptyView(128);
        byte[] frame = codec.encode(v, spec(0, 128, null)).frame();
        check(frame.length < v.memory.capacity() / 5, frame.length + " bytes");
        equal(codec.decode(ByteBuffer.wrap(frame), loaded, spec(0, 128, null)).decodedBytes(), (long) v.memory.capacity());
        double sum = 0;
        for (int i = 0; i < v.memory.capacity(); i += 2) sum += Math.abs(half(v.memory, i) - half(loaded.memory, i));
        double mean = sum / (v.memory.capacity() / 2);
        check(mean < 0.05, "elements are off by " + mean);
      }
    }
  }

  static void profileMissing() {
    Cases.withCache((c, m) -> {
      byte[] profile;
      try (Calibration calibration = calibrated(m)) {
        profile = calibration.finish();
      }
      byte[] frame;
      try (Codec codec = transform(m, profile, 8)) {
        frame = codec.encode(document(64, 1), spec(0, 64, null)).frame();
      }
      View loaded = emptyView(64);
      try (Codec raw = new Codec(m, "raw")) {
        refused(Status.PROFILE_MISSING, () -> raw.decode(ByteBuffer.wrap(frame), loaded, spec(0, 64, null)), "profile");
      }
      // The profile travels like a frame.
      byte[] key = Profile.key(Profile.fingerprint(profile));
      c.put(key, Profile.wrap(profile, null));
      byte[] fetched = Profile.unwrap(c.get(key));
      same(fetched, profile);
      try (Codec other = transform(m, fetched, 4)) {
        other.decode(ByteBuffer.wrap(frame), loaded, spec(0, 64, null));
      }
    });
  }

  static void badInputProfiles() {
    Model.Options foreign = modelOptions();
    foreign.id = "other weights".getBytes();
    try (Model m = new Model(modelOptions()); Model other = new Model(foreign); Calibration calibration = calibrated(m);
        Calibration empty = new Calibration(m, new Calibration.Options())) {
      byte[] profile = calibration.finish();
      refused(Status.INVALID_ARGUMENT, () -> transform(m, null, 8), "profile");
      refused(Status.INVALID_ARGUMENT, () -> transform(m, profile, 3), "ratio");
      refused(Status.INVALID_ARGUMENT, () -> transform(m, profile, 33), "ratio");
      for (int at : new int[] {0, 8, profile.length / 2, profile.length - 1}) {
        byte[] damaged = profile.clone();
        damaged[at] ^= 1;
        int status = Cases.statusOf(() -> transform(m, damaged, 8));
        check(status == Status.CORRUPT || status == Status.VERSION, "byte " + at + ": " + Status.name(status));
      }
      refused(Status.CORRUPT, () -> Profile.fingerprint(Arrays.copyOf(profile, profile.length / 2)));
      refused(Status.MISMATCH, () -> transform(other, profile, 8));
      byte[] saved = calibration.save();
      refused(Status.MISMATCH, () -> Calibration.restore(other, saved));
      refused(Status.CORRUPT, () -> Calibration.restore(m, Arrays.copyOf(saved, saved.length - 1)));
      Calibration.Options low = new Calibration.Options();
      low.ratioMin = 3;
      refused(Status.INVALID_ARGUMENT, () -> new Calibration(m, low), "ratio_min");
      refused(Status.OUT_OF_RANGE, empty::finish, "64");
      View v = document(16, 1);
      refused(Status.OUT_OF_RANGE, () -> empty.add(v, 0, 17), "token");
      v.memory.limit(v.memory.capacity() - 1);
      refused(Status.OUT_OF_RANGE, () -> empty.add(v, 0, 16), "memory");
      refused(Status.INVALID_ARGUMENT, () -> Profile.key(new byte[1]), "fingerprint");
      refused(Status.MISMATCH, () -> Profile.unwrap(frames(m, 1).frames().get(0)));
    }
  }

  static void ropeAndShard() {
    Model.Options o = modelOptions();
    o.ropeStyle = Kvartet.ROPE_HALF_SPLIT;
    o.ropeDims = o.kDim;
    o.ropeBase = 10000;
    try (Model m = new Model(o)) {
      equal(m.shard(), new Model.Shard(0, 2, 0, 2, 16));
      View v = document(32, 1);
      byte[] before = Kit.bytes(v);
      v.firstPosition = 100;
      m.rope(v, 8, 24, true);
      int row = (int) v.tokenStride[0];
      byte[] turned = Kit.bytes(v);
      check(Arrays.equals(turned, 0, 8 * row, before, 0, 8 * row), "tokens were turned that nobody asked for");
      check(!Arrays.equals(turned, 8 * row, 32 * row, before, 8 * row, 32 * row), "nothing was turned");
      m.rope(v, 8, 24, false);
      for (int i = 0; i < before.length; i += 2) {
        check(Math.abs(half(v.memory, i) - half(ByteBuffer.wrap(before), i)) < 0.01, "element " + i / 2);
      }
      refused(Status.OUT_OF_RANGE, () -> m.rope(v, 8, 25, true), "token");
      v.memory.limit(v.memory.capacity() - 1);
      refused(Status.OUT_OF_RANGE, () -> m.rope(v, 0, 1, true), "memory");
    }
  }

  /** Polls until `parts` of an operation are in place; false at its end. */
  private static boolean awaitPart(Node node, Operation operation, long parts) {
    while (node.awaitEvent(WAIT)) {
      for (Operation.Completion done : node.poll(1)) {
        equal(done.id(), operation.id());
        if (!done.part() || done.itemsOk() == parts) return done.part();
      }
    }
    throw new AssertionError("no part came");
  }

  private interface PairBody {
    void run(Model model, Node server, Node client, Peer peer);
  }

  /** A node, a client of it, and the peer that the client sees. */
  static void withNodes(PairBody body) {
    Node.Options listening = new Node.Options();
    listening.listen = "tcp://127.0.0.1:0";
    try (KvRuntime r = new KvRuntime(); Model m = new Model(modelOptions()); Node server = new Node(r, m, listening);
        Node client = new Node(r, m, new Node.Options()); Peer peer = client.connect(server.url(), WAIT)) {
      body.run(m, server, client, peer);
    }
  }

  private static byte[] key(int first) {
    byte[] key = new byte[Kvartet.KEY_BYTES];
    key[0] = (byte) first;
    return key;
  }

  static void streamByLayers() {
    withNodes((m, server, client, peer) -> {
      View v = viewOf(32);
      View loaded = emptyView(32);
      // The stream is asked for before it is opened.
      try (Codec codec = new Codec(m, "raw");
          Operation o = peer.submitPullStream(key(5), 2L * v.memory.capacity(), 8, WAIT);
          FrameStream stream = server.openStream(key(5))) {
        for (int layer = 0; layer < 2; ++layer) {
          Codec.Spec spec = spec(0, 32, key(5));
          spec.layerBegin = layer;
          spec.layerEnd = layer + 1;
          byte[] frame = codec.encode(v, spec).frame();
          stream.append(ByteBuffer.wrap(frame));
          check(awaitPart(client, o, layer + 1), "the stream ended");
          byte[] got = o.frame(layer);
          same(got, frame);
          codec.decode(ByteBuffer.wrap(got), loaded, spec);
        }
        refused(Status.OUT_OF_RANGE, () -> o.frame(2), "2 parts");
        stream.finish();
        equal(o.await(WAIT).itemsOk(), 2L);
        same(Kit.bytes(loaded), Kit.bytes(v));
        refused(Status.CLOSED, () -> stream.append(ByteBuffer.wrap(o.frame(1))));
      }
    });
  }

  static void streamEndsEarly() {
    withNodes((m, server, client, peer) -> {
      List<byte[]> list = frames(m, 2).frames();
      List<Consumer<FrameStream>> ends = List.of(FrameStream::abort, FrameStream::close);
      for (int i = 0; i < ends.size(); ++i) {
        byte[] key = key(i + 1);
        try (FrameStream stream = server.openStream(key); Operation o = peer.submitPullStream(key, 1 << 20, 4, WAIT)) {
          refused(Status.ALREADY_EXISTS, () -> server.openStream(key));
          refused(Status.CORRUPT, () -> stream.append(ByteBuffer.wrap(list.get(0), 0, 100)));
          stream.append(ByteBuffer.wrap(list.get(0)));
          check(awaitPart(client, o, 1), "the stream ended");
          ends.get(i).accept(stream);
          refused(Status.CANCELLED, () -> o.await(WAIT));
          same(o.frame(0), list.get(0));
        }
      }
      try (FrameStream stream = server.openStream(key(9))) {
        for (byte[] frame : list) stream.append(ByteBuffer.wrap(frame));
        stream.finish();
        try (Operation o = peer.submitPullStream(key(9), 1 << 20, 1, WAIT)) {
          refused(Status.BUFFER_TOO_SMALL, () -> o.await(WAIT));
        }
      }
      refused(Status.INVALID_ARGUMENT, () -> peer.submitPullStream(key(9), 0, 1, WAIT), "bytes is 0");
    });
  }
}
