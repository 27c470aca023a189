package org.loam.jvm.harness;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Modifier;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.loam.jvm.tm.Library;

/** Programs and libraries, found in their packages: no list is kept by hand. */
public final class Registry {
  private static final String PROGRAMS = "org/loam/jvm/programs";
  private static final String LIBRARIES = "org/loam/jvm/syncs";

  private Registry() {}

  public static List<Program> programs() {
    return made(classes(PROGRAMS), Program.class);
  }

  public static List<Library> libraries() {
    return made(classes(LIBRARIES), Library.class);
  }

  /**
   * Loads no other library: while there is one way to reach data, the compiler needs no test which
   * it is. Throws BadInput, naming those that there are.
   */
  static Library library(String name) {
    List<String> all = classes(LIBRARIES);
    List<String> wanted = all.stream().filter(one -> nameOf(one).equals(name)).toList();
    return made(wanted, Library.class).stream()
        .findFirst()
        .orElseThrow(
            () ->
                new BadInput(
                    "SYNC",
                    name,
                    "no such library; known: "
                        + String.join(" ", all.stream().map(Registry::nameOf).toList()),
                    ""));
  }

  private static String nameOf(String type) {
    return Library.nameOf(type.substring(type.lastIndexOf('.') + 1));
  }

  private static <T> List<T> made(List<String> classes, Class<T> wanted) {
    List<T> all = new ArrayList<>();
    for (String name : classes) {
      try {
        Class<?> type = Class.forName(name);
        if (wanted.isAssignableFrom(type) && !Modifier.isAbstract(type.getModifiers())) {
          all.add(wanted.cast(type.getDeclaredConstructor().newInstance()));
        }
      } catch (ReflectiveOperationException problem) {
        throw new IllegalStateException(name + " cannot be made", problem);
      }
    }
    return all;
  }

  private static List<String> classes(String folder) {
    try {
      URI place = Registry.class.getProtectionDomain().getCodeSource().getLocation().toURI();
      Path top = Path.of(place);
      if (Files.isDirectory(top)) {
        return classes(top.resolve(folder), folder);
      }
      try (FileSystem jar = FileSystems.newFileSystem(top, Map.of())) {
        return classes(jar.getPath(folder), folder);
      }
    } catch (IOException problem) {
      throw new UncheckedIOException(problem);
    } catch (URISyntaxException problem) {
      throw new IllegalStateException(problem);
    }
  }

  private static List<String> classes(Path place, String folder) throws IOException {
    try (Stream<Path> files = Files.list(place)) {
      return files
          .map(file -> file.getFileName().toString())
          .filter(name -> name.endsWith(".class") && name.indexOf('$') < 0)
          .map(name -> folder.replace('/', '.') + "." + name.substring(0, name.length() - 6))
          .sorted()
          .toList();
    }
  }
}
