package org.loam.jvm.programs.lee;

import java.util.ArrayList;
import java.util.List;
import org.loam.jvm.harness.Json;
import org.loam.jvm.harness.Options;
import org.loam.jvm.harness.Program;
import org.loam.jvm.tm.Body;
import org.loam.jvm.tm.Ints;
import org.loam.jvm.tm.Library;
import org.loam.jvm.tm.Tx;
import org.loam.jvm.tm.Worker;

/** A board, the queue of what is to be routed, and what each thread has laid. */
public final class Routes implements Program.Instance {
  private final Library library;
  private final Joins joins;
  private final Grid board;
  private final Queue queue;
  private final List<Mine> mine = new ArrayList<>();
  private int laid;
  private int failed;

  private record Track(int join, int[] path) {}

  /** What belongs to a thread. */
  private static final class Mine {
    final Wave wave;
    final Lay lay;
    final List<Track> tracks = new ArrayList<>();

    Mine(Grid board, int size, boolean rowMajor, boolean own) {
      wave = new Wave(size, own);
      lay = new Lay(board, wave, rowMajor);
    }
  }

  /** Takes the number of the next join. */
  private static final class Queue implements Body {
    private final Ints next;
    private final int joins;

    Queue(Tx tx, int joins) {
      next = new Ints(tx, 0);
      this.joins = joins;
    }

    @Override
    public double run(Tx tx) {
      int taken = next.get(tx, 0);
      if (taken < joins) {
        next.set(tx, 0, taken + 1);
      }
      return taken;
    }
  }

  /** Makes the board with its pads, and the queue. */
  private static final class Building implements Body {
    private final Joins joins;
    private final boolean rowMajor;
    private Grid board;
    private Queue queue;

    Building(Joins joins, boolean rowMajor) {
      this.joins = joins;
      this.rowMajor = rowMajor;
    }

    @Override
    public double run(Tx tx) {
      Grid grid = Grid.of(tx, joins.size, rowMajor);
      for (int i = 0; i < joins.pads.size(); ++i) {
        Joins.Point pad = joins.pads.get(i);
        grid.set(tx, pad.x(), pad.y(), 0, Grid.PAD);
        grid.set(tx, pad.x(), pad.y(), 1, Grid.PAD);
      }
      for (int i = 0; i < joins.pads.size(); ++i) {
        Joins.Point pad = joins.pads.get(i);
        beside(tx, grid, pad.x() + 1, pad.y());
        beside(tx, grid, pad.x() - 1, pad.y());
        beside(tx, grid, pad.x(), pad.y() + 1);
        beside(tx, grid, pad.x(), pad.y() - 1);
      }
      board = grid;
      queue = new Queue(tx, joins.joins.size());
      return 0;
    }

    private static void beside(Tx tx, Grid grid, int x, int y) {
      for (int z = 0; z < 2; ++z) {
        if (grid.get(tx, x, y, z) == Grid.EMPTY) {
          grid.set(tx, x, y, z, Grid.BESIDE_PAD);
        }
      }
    }
  }

  public Routes(Library library, Options options) {
    this.library = library;
    joins = Joins.of(options.choice("board"), options.integer("tracks"));
    String variant = options.choice("variant");
    boolean rowMajor = variant.endsWith("rm");
    Building building = new Building(joins, rowMajor);
    library.atomically(new Worker(0), building);
    board = building.board;
    queue = building.queue;
    for (int i = 0; i < options.threads(); ++i) {
      mine.add(new Mine(board, joins.size, rowMajor, variant.startsWith("opt")));
    }
  }

  @Override
  public long units(int thread) {
    return Long.MAX_VALUE;
  }

  @Override
  public int work(Worker worker, int thread) {
    Mine own = mine.get(thread);
    int number = (int) library.atomically(worker, queue);
    if (number >= joins.joins.size()) {
      return 0;
    }
    own.lay.begin(joins.joins.get(number));
    boolean done = library.atomically(worker, own.lay) != 0;
    own.tracks.add(new Track(number, done ? own.wave.path() : new int[0]));
    own.wave.forget();
    return 2;
  }

  @Override
  public String check() {
    Checking checking = new Checking();
    library.atomically(new Worker(0), checking);
    return checking.problem;
  }

  /** Holds the tracks against the board. */
  private final class Checking implements Body {
    private String problem = "";
    private final int[] owner = new int[joins.size * joins.size * 2];
    private final boolean[] seen = new boolean[joins.joins.size()];

    @Override
    public double run(Tx tx) {
      java.util.Arrays.fill(owner, 0);
      java.util.Arrays.fill(seen, false);
      laid = 0;
      failed = 0;
      problem = "";
      for (Mine own : mine) {
        for (int i = 0; i < own.tracks.size() && problem.isEmpty(); ++i) {
          problem = track(tx, own.tracks.get(i));
        }
      }
      for (int i = 0; i < seen.length && problem.isEmpty(); ++i) {
        problem = seen[i] ? "" : "a join was left out";
      }
      for (int i = 0; i < owner.length && problem.isEmpty(); ++i) {
        boolean stray = owner[i] == 0 && cell(tx, i) > Grid.PAD;
        problem = stray ? "the board has a cell of no track" : "";
      }
      return 0;
    }

    private String track(Tx tx, Track track) {
      if (seen[track.join]) {
        return "a join was routed twice";
      }
      seen[track.join] = true;
      int[] path = track.path;
      if (path.length == 0) {
        ++failed;
        return "";
      }
      ++laid;
      Joins.Join join = joins.joins.get(track.join);
      if (!isAt(path[0], join.to()) || !isAt(path[path.length - 1], join.from())) {
        return "a track does not lead from end to end";
      }
      for (int i = 0; i < path.length; ++i) {
        if (i != 0 && distance(path[i], path[i - 1]) != 1) {
          return "a track has a gap";
        }
        int cell = cell(tx, path[i]);
        if (cell < Grid.PAD && i + 1 != path.length) {
          return "a cell of a track is not on the board";
        }
        boolean end = i == 0 || isAt(path[i], join.from()) || isAt(path[i], join.to());
        if (cell == Grid.PAD && !end) {
          return "a track crosses a pad";
        }
        int holder = owner[path[i]];
        if (holder != 0 && holder != track.join + 1 && cell != Grid.PAD) {
          return "two tracks share a cell";
        }
        owner[path[i]] = track.join + 1;
      }
      return "";
    }

    private int cell(Tx tx, int at) {
      return board.get(tx, (at >> 1) / joins.size, (at >> 1) % joins.size, at & 1);
    }

    private boolean isAt(int at, Joins.Point point) {
      return (at >> 1) / joins.size == point.x() && (at >> 1) % joins.size == point.y();
    }

    private int distance(int a, int b) {
      return Math.abs((a >> 1) / joins.size - (b >> 1) / joins.size)
          + Math.abs((a >> 1) % joins.size - (b >> 1) % joins.size)
          + Math.abs((a & 1) - (b & 1));
    }
  }

  @Override
  public void addTo(Json line) {
    line.field("laid", laid).field("failed", failed);
  }
}
