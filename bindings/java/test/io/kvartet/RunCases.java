package io.kvartet;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.List;

/** Runs every case; the last line ends in "N passed, N failed". */
final class RunCases {
  private RunCases() {}

  public static void main(String[] args) throws Exception {
    int passed = 0;
    int failed = 0;
    for (Class<?> suite : List.of(Cases.class, BadInput.class, Transforms.class, Lifetimes.class)) {
      for (Method method : suite.getDeclaredMethods()) {
        if (Modifier.isPrivate(method.getModifiers()) || method.getParameterCount() > 0 || method.isSynthetic()
            || method.getReturnType() != void.class) {
          continue;
        }
        try {
          method.invoke(null);
          ++passed;
        } catch (InvocationTargetException e) {
          ++failed;
          System.out.println("FAILED " + method.getName());
          e.getCause().printStackTrace(System.out);
        }
      }
    }
    System.out.println("java: " + passed + " passed, " + failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }
}
