package io.kvartet;

import static io.kvartet.Kit.WAIT;
import static io.kvartet.Kit.check;
import static io.kvartet.Kit.equal;
import static io.kvartet.Kit.frames;
import static io.kvartet.Kit.modelOptions;
import static io.kvartet.Kit.refused;
import static io.kvartet.Kit.toyOptions;

import io.kvartet.internal.generated.Flat;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The cases about the lives of objects and threads. */
final class Lifetimes {
  private Lifetimes() {}

  static void closedHandle() {
    try (KvRuntime r = new KvRuntime(); Model m = new Model(modelOptions())) {
      Kit.Frames f = frames(m, 1);
      Cache c = new Cache(r, "mem:?capacity=1MiB");
      c.close();
      c.close();
      List<Runnable> calls = List.of(() -> c.put(f.keys().get(0), f.frames().get(0)), () -> c.get(f.keys().get(0)),
          () -> c.match(f.keys()), c::stats, () -> c.submitPut(f.keys(), f.frames(), WAIT), c::eventFd, () -> c.poll(1));
      for (Runnable call : calls) refused(Status.CLOSED, call, "cache");
      Model gone = new Model(modelOptions());
      gone.close();
      refused(Status.CLOSED, () -> new Codec(gone, "raw"), "model");
      refused(Status.CLOSED, gone::fingerprint);
      Verifier v = new Verifier(toyOptions(4));
      v.close();
      refused(Status.CLOSED, v::next);
      // Every other kind of object.
      Node node = new Node(r, m, new Node.Options());
      FrameStream stream = node.openStream(f.keys().get(0));
      stream.close();
      node.close();
      Calibration calibration = new Calibration(m, new Calibration.Options());
      calibration.close();
      Memory memory = new Memory(16);
      memory.close();
      Meter meter = new Meter(r);
      meter.close();
      refused(Status.CLOSED, () -> stream.append(ByteBuffer.wrap(f.frames().get(0))), "stream");
      refused(Status.CLOSED, stream::finish);
      refused(Status.CLOSED, () -> node.connect("tcp://127.0.0.1:1", WAIT), "node");
      refused(Status.CLOSED, () -> node.openStream(f.keys().get(0)));
      refused(Status.CLOSED, calibration::finish, "calibration");
      refused(Status.CLOSED, calibration::progress);
      refused(Status.CLOSED, () -> memory.read(0, new byte[1]), "memory");
      refused(Status.CLOSED, meter::json, "meter");
      try (Cache open = new Cache(r, "mem:?capacity=1MiB")) {
        Operation operation = open.submitPut(f.keys(), f.frames(), WAIT);
        operation.close();
        refused(Status.CLOSED, () -> operation.await(WAIT), "operation");
        refused(Status.CLOSED, operation::cancel);
      }
      // Below the layer: a stale or foreign handle is an error of the library's own.
      byte[] key = f.keys().get(0);
      m.on("get", (model, unused) -> {
        refused(Status.WRONG_HANDLE, () -> Native.call("get", e -> Flat.kvtf_cache_get(model, key, null, e)));
        return 0;
      });
      refused(Status.STALE_HANDLE, () -> Native.call("get", e -> Flat.kvtf_cache_get(4L << 56 | 9999, key, null, e)));
    }
  }

  static void parentWithChildren() {
    Node.Options listening = new Node.Options();
    listening.listen = "tcp://127.0.0.1:0";
    try (Model m = new Model(modelOptions())) {
      Kit.Frames f = frames(m, 1);
      KvRuntime r = new KvRuntime();
      Cache c = new Cache(r, "mem:?capacity=16MiB");
      refused(Status.BUSY, r::close, "1 open");
      Operation o = c.submitPut(f.keys(), f.frames(), WAIT);
      refused(Status.BUSY, c::close);
      c.put(f.keys().get(0), f.frames().get(0));
      Node server = new Node(r, m, listening);
      server.serve(c);
      o.close();
      refused(Status.BUSY, c::close);
      refused(Status.BUSY, m::close);
      server.close();
      c.close();
      r.close();
    }
  }

  /** Runs bodies on threads of their own; the first failure is thrown. */
  private static void parallel(int threads, java.util.function.IntConsumer body) throws InterruptedException {
    ConcurrentLinkedQueue<Throwable> failures = new ConcurrentLinkedQueue<>();
    Thread[] all = new Thread[threads];
    for (int i = 0; i < threads; ++i) {
      int worker = i;
      all[i] = new Thread(() -> body.accept(worker));
      all[i].setUncaughtExceptionHandler((thread, failure) -> failures.add(failure));
      all[i].start();
    }
    for (Thread thread : all) thread.join();
    if (!failures.isEmpty()) throw new AssertionError(failures.peek());
  }

  static void concurrentClose() throws InterruptedException {
    try (KvRuntime r = new KvRuntime(); Model m = new Model(modelOptions())) {
      Kit.Frames f = frames(m, 1);
      for (int round = 0; round < 20; ++round) {
        Cache c = new Cache(r, "mem:?capacity=16MiB");
        Operation o = c.submitPut(f.keys(), f.frames(), WAIT);
        List<Runnable> calls = List.of(c::close, () -> c.put(f.keys().get(0), f.frames().get(0)), o::close,
            () -> o.await(WAIT));
        parallel(8, worker -> {
          for (int i = 0; i < 50; ++i) {
            int status = Cases.statusOf(calls.get(worker % 4));
            check(status == Status.OK || status == Status.BUSY || status == Status.CLOSED, Status.name(status));
          }
        });
        o.close();
        c.close();
      }
    }
  }

  static void concurrentCalls() throws InterruptedException {
    try (KvRuntime r = new KvRuntime(); Model m = new Model(modelOptions()); Cache c = new Cache(r, "mem:?capacity=64MiB")) {
      Kit.Frames f = frames(m, 8);
      parallel(8, worker -> {
        for (int n = 0; n < 100; ++n) {
          c.put(f.keys().get(worker), f.frames().get(worker));
          check(Arrays.equals(c.get(f.keys().get(worker)), f.frames().get(worker)), "frame " + worker);
          refused(Status.UNSUPPORTED, () -> new Codec(m, "no-codec-" + worker), "no-codec-" + worker);
        }
      });
    }
  }

  private static long dropOne() {
    Verifier dropped = new Verifier(toyOptions(4));
    long handle = dropped.state.enter();
    dropped.state.leave();
    return handle;
  }

  static void leakReported() throws InterruptedException {
    LinkedBlockingQueue<String> reported = new LinkedBlockingQueue<>();
    Kvartet.setLeakHandler(reported::add);
    long handle = dropOne();
    String kind = null;
    for (int i = 0; i < 1000 && kind == null; ++i) {
      System.gc();
      kind = reported.poll(5, TimeUnit.MILLISECONDS);
    }
    equal(kind, "verifier");
    byte[] action = new byte[8 * 8 + 4 * 257];
    Native.call("next", e -> Flat.kvtf_verifier_next(handle, action, e)); // reported, not freed
    Flat.kvtf_verifier_destroy(handle);
  }

  static void hostFailurePasses() {
    for (String step : List.of("draft", "verify")) {
      try (Verifier v = new Verifier(toyOptions(6))) {
        Kit.Toy toy = new Kit.Toy();
        toy.loads = 1;
        toy.failAt = step;
        try {
          v.run(toy);
          throw new AssertionError("no exception");
        } catch (IllegalStateException e) {
          equal(e.getMessage(), "engine: " + step);
        }
        toy.failAt = null;
        v.run(toy); // the action that was due is due again
        toy.checkCommitted();
      }
    }
  }

  private static long residentKb() throws Exception {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) return Long.parseLong(line.replaceAll("[^0-9]", ""));
    }
    throw new AssertionError("no VmRSS");
  }

  static void manyCallsNoLeak() throws Exception {
    String asked = System.getenv("KVT_BINDINGS_CALLS");
    int calls = asked == null ? 100000 : Integer.parseInt(asked);
    try (KvRuntime r = new KvRuntime(); Model m = new Model(modelOptions()); Cache c = new Cache(r, "mem:?capacity=16MiB")) {
      Kit.Frames f = frames(m, 1);
      byte[] frame = f.frames().get(0);
      ByteBuffer direct = ByteBuffer.allocateDirect(frame.length).put(frame).flip();
      work(calls, c, m, f.keys().get(0), direct);
      System.gc();
      long before = residentKb();
      work(calls, c, m, f.keys().get(0), direct);
      System.gc();
      long grown = residentKb() - before;
      check(grown < 48 * 1024, calls + " calls left " + grown + " KB");
      check(r.memoryUsed() < 1 << 20, "the runtime holds " + r.memoryUsed());
    }
  }

  private static void work(int calls, Cache c, Model m, byte[] key, ByteBuffer frame) {
    ByteBuffer room = ByteBuffer.allocateDirect(frame.remaining());
    byte[] missing = new byte[36];
    missing[0] = 9;
    byte[] copy = new byte[frame.remaining()];
    frame.duplicate().get(copy);
    for (int i = 0; i < calls; i += 10) {
      c.put(key, frame);
      c.get(key, room);
      refused(Status.NOT_FOUND, () -> c.get(missing));
      new Codec(m, "raw").close();
      try (Verifier v = new Verifier(toyOptions(4))) {
        v.next();
      }
      try (Operation o = c.submitPut(List.of(key), List.of(copy), WAIT)) {
        o.await(WAIT);
      }
      new Calibration(m, new Calibration.Options()).close();
      refused(Status.UNSUPPORTED, () -> new Codec(m, "zip"));
    }
  }
}
