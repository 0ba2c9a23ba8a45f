package io.kvartet;

import java.lang.ref.Cleaner;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongConsumer;

/**
 * What all objects have: a handle that is given out only while it is open, and a count of its holds (calls that run,
 * and children). Closing an object that is held is BUSY and changes nothing; closing again does nothing. An object
 * that is dropped without close is reported, never freed. Threads: any.
 */
public abstract class NativeObject implements AutoCloseable {
  interface Create {
    long run(long[] parents, java.nio.ByteBuffer error);
  }

  interface On {
    long run(long handle, java.nio.ByteBuffer error);
  }

  interface OnOutput {
    long run(long handle, byte[] buffer, java.nio.ByteBuffer error);
  }

  private static final Cleaner CLEANER = Cleaner.create();
  private static volatile Consumer<String> leakHandler = kind ->
      System.getLogger("io.kvartet").log(System.Logger.Level.WARNING, "a {0} was dropped without close", kind);

  /** Apart from the object, so that the cleaner can see it when the object is gone. */
  static final class State implements Runnable {
    final String kind;
    final LongConsumer end;
    final List<State> parents; // guarded by this
    private long handle; // guarded by this; 0 once closed
    private int holds; // guarded by this

    State(String kind, LongConsumer end, List<State> parents, long handle) {
      this.kind = kind;
      this.end = end;
      this.parents = parents;
      this.handle = handle;
    }

    synchronized long enter() {
      if (handle == 0) throw new KvartetException(Status.CLOSED, kind, "the " + kind + " is closed");
      ++holds;
      return handle;
    }

    synchronized void leave() {
      --holds;
    }

    void close() {
      long closing;
      synchronized (this) {
        if (handle == 0) return;
        if (holds > 0) {
          throw new KvartetException(Status.BUSY, "close", "the " + kind + " has " + holds + " open children or calls");
        }
        closing = handle;
        handle = 0;
      }
      try {
        end.accept(closing);
      } finally {
        for (State parent : parents) parent.leave();
      }
    }

    @Override
    public void run() {
      boolean open;
      synchronized (this) {
        open = handle != 0;
      }
      if (open) leakHandler.accept(kind);
    }
  }

  final State state;
  private final Cleaner.Cleanable cleanable;

  NativeObject(String kind, LongConsumer end, Create create, NativeObject... parents) {
    List<State> entered = new ArrayList<>();
    boolean made = false;
    try {
      long[] handles = new long[parents.length];
      for (int i = 0; i < parents.length; ++i) {
        handles[i] = parents[i].state.enter();
        entered.add(parents[i].state);
      }
      long handle = Native.call(kind, error -> create.run(handles, error));
      state = new State(kind, end, entered, handle);
      made = true;
    } finally {
      if (!made) entered.forEach(State::leave);
    }
    cleanable = CLEANER.register(this, state);
  }

  static void setLeakHandler(Consumer<String> handler) {
    leakHandler = handler;
  }

  /** One call on the open object. */
  final long on(String name, On function) {
    long handle = state.enter();
    try {
      return Native.call(name, error -> function.run(handle, error));
    } finally {
      state.leave();
    }
  }

  final byte[] onOutput(String name, int guess, OnOutput function) {
    long handle = state.enter();
    try {
      return Native.output(name, guess, (buffer, error) -> function.run(handle, buffer, error));
    } finally {
      state.leave();
    }
  }

  /** Keeps `parent` open until this object is closed. The caller has entered it and this object. */
  final void adopt(State parent) {
    synchronized (state) {
      state.parents.add(parent);
    }
  }

  @Override
  public void close() {
    state.close();
    cleanable.clean();
  }
}
