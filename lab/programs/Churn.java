import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** Threads with objects for the collector, and with what lies outside of its heap: compressors and direct buffers. */
public final class Churn {
  private static long work(int seed, int rounds) throws Exception {
    final CRC32 check = new CRC32();
    final List<ByteBuffer> direct = new ArrayList<>();
    for (int turn = 0; turn < rounds; ++turn) {
      final Map<String, List<Integer>> map = new HashMap<>();
      for (int i = 0; i < 2000; ++i) map.computeIfAbsent("k" + (i * 31 + seed) % 500, k -> new ArrayList<>()).add(i);
      final byte[] text = new java.util.TreeMap<>(map).toString().getBytes("UTF-8");

      final Deflater deflater = new Deflater(1 + turn % 9);
      deflater.setInput(text);
      deflater.finish();
      final byte[] packed = new byte[text.length + 64];
      final int length = deflater.deflate(packed);
      deflater.end();
      final Inflater inflater = new Inflater();
      inflater.setInput(packed, 0, length);
      final byte[] back = new byte[text.length];
      if (inflater.inflate(back) != text.length || !java.util.Arrays.equals(text, back)) throw new Exception("another text");
      inflater.end();

      final ByteBuffer buffer = ByteBuffer.allocateDirect(1000 + turn % 50 * 997);
      buffer.put(packed, 0, Math.min(length, buffer.capacity())).flip();
      direct.add(buffer);
      if (direct.size() > 20) direct.subList(0, 15).clear();
      check.update(packed, 0, length);
      check.update(direct.get(turn % direct.size()).duplicate());
    }
    return check.getValue();
  }

  public static void main(String[] arguments) throws Exception {
    final int rounds = Integer.parseInt(arguments[0]);
    final long[] found = new long[4];
    final Thread[] threads = new Thread[4];
    for (int wave = 0; wave < 3; ++wave) {
      for (int n = 0; n < threads.length; ++n) {
        final int own = n;
        threads[n] = new Thread(() -> {
          try {
            found[own] = found[own] * 31 + work(own, rounds);
          } catch (Exception problem) {
            problem.printStackTrace();
            System.exit(1);
          }
        });
        threads[n].start();
      }
      for (final Thread thread : threads) thread.join();
      System.gc();
    }
    for (final long one : found) System.out.println(one);
  }
}
