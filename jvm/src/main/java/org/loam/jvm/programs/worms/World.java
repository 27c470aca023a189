package org.loam.jvm.programs.worms;

import java.util.Arrays;
import org.loam.jvm.harness.Json;
import org.loam.jvm.harness.Options;
import org.loam.jvm.harness.Program;
import org.loam.jvm.harness.Random;
import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;

/** A torus of numbers with 48 worms on it, and the threads that move them. */
public final class World implements Program.Instance {
  public static final int WORMS = 48;

  private final Library library;
  private final int size;
  private final int head;
  private final int readPercent;
  private final int threads;
  private final long operations;
  private final Board board;
  private final Board.Worm[] worms = new Board.Worm[WORMS];
  private final Place[] places = new Place[WORMS];
  private final Mine[] mine;
  private final long startSum;

  /** What belongs to a thread. */
  private static final class Mine {
    final Random random;
    final Scratch scratch = new Scratch();
    final Step step;
    final Place next;
    int worm;
    long changed;
    long moves;

    Mine(Board board, long seed, int thread, int body) {
      random = new Random(seed, thread + 1);
      step = new Step(board, scratch);
      next = new Place(body);
      worm = thread % WORMS;
    }
  }

  public World(Library library, Options options) {
    this.library = library;
    size = options.integer("size");
    head = options.integer("head");
    int body = options.integer("body");
    readPercent = options.integer("read_percent");
    threads = options.threads();
    operations = options.integer("operations");
    Random random = new Random(options.seed(), 0);
    int[] numbers = new int[size * size];
    for (int i = 0; i < numbers.length; ++i) {
      numbers[i] = random.below(9);
    }
    startSum = Arrays.stream(numbers).asLongStream().sum();
    Placing placing = new Placing(numbers, body);
    library.atomically(new Worker(0), placing);
    board = placing.made;
    mine = new Mine[threads];
    for (int i = 0; i < threads; ++i) {
      mine[i] = new Mine(board, options.seed(), i, body);
    }
  }

  /** Makes the board, and puts the worms onto it. */
  private final class Placing implements Body {
    private final int[] numbers;
    private final int body;
    private Board made;

    Placing(int[] numbers, int body) {
      this.numbers = numbers;
      this.body = body;
    }

    @Override
    public double run(Tx tx) {
      Board board = new Board(tx, numbers);
      made = board;
      int across = size / (2 * head);
      int[] all = new int[Scratch.CELLS_MAX];
      for (int w = 0; w < WORMS; ++w) {
        worms[w] = new Board.Worm(w);
        places[w] = new Place(body);
        for (int i = 0; i < body; ++i) {
          places[w].bodyX[i] = w % across * 2 * head + head;
          places[w].bodyY[i] = w / across * (head + body + 1) + body - 1 - i;
        }
        int count = places[w].all(head, size, all);
        for (int i = 0; i < count; ++i) {
          board.worm(tx, all[i], worms[w]);
        }
      }
      return 0;
    }
  }

  @Override
  public long units(int thread) {
    return operations;
  }

  @Override
  public int work(Worker worker, int thread) {
    Mine own = mine[thread];
    int kind = own.random.below(100) < readPercent ? own.random.below(5) : 5 + own.random.below(8);
    int turn = own.random.below(3);
    int step = Math.min(threads, WORMS);
    own.worm = own.worm + step < WORMS ? own.worm + step : thread % WORMS;
    if (thread >= WORMS) {
      return 1; // more threads than worms
    }
    Place place = places[own.worm];
    own.next.moved(place, turn);
    own.scratch.begin(worms[own.worm], place, own.next, head, size, kind);
    own.changed += (long) library.atomically(worker, own.step);
    if (own.scratch.moved) {
      place.copy(own.next);
      ++own.moves;
    }
    return 1;
  }

  @Override
  public String check() {
    Checking checking = new Checking();
    library.atomically(new Worker(0), checking);
    return checking.problem;
  }

  /** Looks at every cell. */
  private final class Checking implements Body {
    private String problem = "";

    @Override
    public double run(Tx tx) {
      int[] expected = new int[size * size];
      Arrays.fill(expected, WORMS);
      int[] all = new int[Scratch.CELLS_MAX];
      for (int w = 0; w < WORMS; ++w) {
        int count = places[w].all(head, size, all);
        for (int i = 0; i < count; ++i) {
          if (expected[all[i]] != WORMS && expected[all[i]] != w) {
            problem = "two worms are on one cell";
            return 0;
          }
          expected[all[i]] = w;
        }
      }
      long sum = startSum;
      for (Mine own : mine) {
        sum += own.changed;
      }
      for (int i = 0; i < expected.length; ++i) {
        Board.Worm worm = board.worm(tx, i);
        if ((worm == null ? WORMS : worm.number) != expected[i]) {
          problem = "a cell names another worm than its own";
          return 0;
        }
        sum -= board.number(tx, i);
      }
      problem = sum == 0 ? "" : "the sum of the numbers is not what the operations made it";
      return 0;
    }
  }

  @Override
  public void addTo(Json line) {
    long moves = 0;
    for (Mine own : mine) {
      moves += own.moves;
    }
    line.field("moves", moves);
  }
}
