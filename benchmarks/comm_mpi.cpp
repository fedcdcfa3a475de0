// SPDX-License-Identifier: Apache-2.0
// Speed of comm-ucx: all_reduce compared with MPI_Allreduce, alternating in one run. With --bandwidth, messages in one
// direction through exchange(), a window at a time, as ucx_perftest -t tag_bw does (scripts/bench-comm compares the
// two).
//
//   mpirun -np 2 --bind-to none --mca mpi_yield_when_idle 1 bench_comm_mpi [--json FILE]
//
// Compare ratios within one run: other programs on the machine change absolute numbers.
#include <mpi.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "mpi_store.hpp"
#include "support/ranks.hpp"

namespace triax::bench {
namespace {

using triax::test::Communication;
using triax::test::Rank;

struct Asked {
  std::string plugin = "comm-ucx", wait = "yield", json;
  std::size_t min_bytes = 4 << 10, max_bytes = 64 << 20, window = 32;
  int turns = 15;
  double turn_s = 0.02; // least time of a turn; small calls are repeated
  bool bandwidth = false, small_pages = false;
};

/// Memory in huge pages if available, as ucx_perftest allocates it, or in small pages.
class Buffer {
 public:
  Buffer(std::size_t bytes, bool small_pages) : data_(::operator new(bytes, kAlign)) {
    ::madvise(data_, bytes, small_pages ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { ::operator delete(data_, kAlign); }
  void* data() const { return data_; }

 private:
  static constexpr std::align_val_t kAlign{2 << 20};
  void* data_;
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

/// Seconds per call of the slowest rank, over `calls` calls.
double turn(int calls, const std::function<void()>& call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call();
  double mine = (MPI_Wtime() - begin) / calls, slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

/// Number of calls that fill a turn; the same on all ranks.
int calls_for(const Asked& asked, const std::function<void()>& call) {
  for (int i = 0; i < 3; ++i) turn(1, call); // warm-up
  return std::clamp(static_cast<int>(asked.turn_s / turn(3, call)), 1, 2000);
}

void compare_all_reduce(const Asked& asked, Rank& rank, Communicator& comm) {
  nlohmann::json rows = nlohmann::json::array();
  if (rank.index() == 0)
    std::printf("%12s %12s %12s %10s %12s %12s %10s\n", "bytes", "ours us", "MPI us", "MPI/ours", "best us", "MPI's us",
                "MPI/ours");
  for (std::size_t bytes = asked.min_bytes; bytes <= asked.max_bytes; bytes *= 2) {
    const auto elements = static_cast<std::int64_t>(bytes / sizeof(float));
    const Buffer from(bytes, asked.small_pages), to(bytes, asked.small_pages);
    const TensorView in(from.data(), DType::f32, {elements}), out(to.data(), DType::f32, {elements});
    std::fill_n(in.as<float>(), elements, static_cast<float>(rank.index() + 1));
    const std::function<void()> ours = [&] { rank.wait(comm.all_reduce(in, out, Reduce::sum, rank.stream())); };
    const std::function<void()> mpi = [&] {
      MPI_Allreduce(in.data(), out.data(), static_cast<int>(elements), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    };
    const int calls = std::min(calls_for(asked, ours), calls_for(asked, mpi));
    std::vector<double> times[2];
    for (int i = 0; i < asked.turns; ++i) {
      // Alternate, and also alternate which one goes first.
      for (const int which : {i % 2, 1 - i % 2}) times[which].push_back(turn(calls, which == 0 ? ours : mpi));
    }
    const double our_us = 1e6 * median(times[0]), mpi_us = 1e6 * median(times[1]);
    const double our_best_us = 1e6 * *std::min_element(times[0].begin(), times[0].end());
    const double mpi_best_us = 1e6 * *std::min_element(times[1].begin(), times[1].end());
    if (rank.index() != 0) continue;
    std::printf("%12zu %12.1f %12.1f %10.2f %12.1f %12.1f %10.2f\n", bytes, our_us, mpi_us, mpi_us / our_us,
                our_best_us, mpi_best_us, mpi_best_us / our_best_us);
    std::fflush(stdout);
    rows.push_back({{"bytes", bytes},
                    {"ours_us", our_us},
                    {"mpi_us", mpi_us},
                    {"ratio", mpi_us / our_us},
                    {"ours_best_us", our_best_us},
                    {"mpi_best_us", mpi_best_us}});
  }
  if (rank.index() == 0 && !asked.json.empty()) {
    std::ofstream(asked.json) << nlohmann::json{{"ranks", comm.size()}, {"all_reduce", rows}} << "\n";
  }
}

/// From rank 0 to rank 1; MB/s (10^6 bytes) by size.
void one_way(const Asked& asked, Rank& rank, Communicator& comm) {
  const std::unique_ptr<Stream> other = rank.device().make_stream("other");
  for (std::size_t bytes = asked.min_bytes; bytes <= asked.max_bytes; bytes *= 2) {
    const Buffer memory(bytes, asked.small_pages);
    const TensorView view(memory.data(), DType::u8, {static_cast<std::int64_t>(bytes)});
    std::fill_n(view.as<std::byte>(), bytes, std::byte{1});
    // Every message uses the same buffer, as in ucx_perftest. One half of the window waits while the other moves.
    const Direction direction = rank.index() == 0 ? Direction::send : Direction::receive;
    const std::vector<Transfer> half(asked.window / 2, Transfer{direction, 1 - rank.index(), 0, view});
    Work under_way[2];
    int turns = 0;
    const std::function<void()> messages = [&] {
      Work& work = under_way[turns % 2];
      rank.wait(work);
      work = comm.exchange(half, turns++ % 2 == 0 ? rank.stream() : *other);
    };
    const int calls = calls_for(asked, messages);
    std::vector<double> times;
    for (int i = 0; i < asked.turns; ++i) times.push_back(turn(calls, messages));
    const double rate = 1e-6 * static_cast<double>(bytes * half.size()) / median(times);
    for (const Work& work : under_way) rank.wait(work);
    if (rank.index() == 0) std::printf("%zu %.1f\n", bytes, rate);
    std::fflush(stdout);
  }
}

int run(const Asked& asked) {
  int index = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &index);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (asked.bandwidth && ranks != 2) {
    std::fprintf(stderr, "bench_comm_mpi: --bandwidth is between two ranks, not %d\n", ranks);
    return 2;
  }
  MpiStore store;
  Communication communication{asked.plugin, {}};
  if (asked.plugin == "comm-ucx") communication.options.set("wait", asked.wait);
  const Layout layout = Layout::ptd(1, ranks, 1);
  Rank rank(index, layout, store, communication);
  Communicator& comm = rank.join_world();
  if (asked.bandwidth) {
    one_way(asked, rank, comm);
  } else {
    compare_all_reduce(asked, rank, comm);
  }
  comm.barrier(Rank::deadline());
  return 0;
}

} // namespace
} // namespace triax::bench

int main(int count, char** arguments) {
  triax::bench::Asked asked;
  CLI::App app("comm-ucx against MPI and ucx_perftest");
  app.add_option("--plugin", asked.plugin, "communicator");
  app.add_option("--wait", asked.wait, "of comm-ucx");
  app.add_option("--min", asked.min_bytes, "bytes of the smallest message");
  app.add_option("--max", asked.max_bytes, "bytes of the largest");
  app.add_option("--turns", asked.turns, "of each, per size");
  app.add_option("--turn-s", asked.turn_s, "seconds that the calls of a turn fill");
  app.add_option("--window", asked.window, "messages in flight, with --bandwidth");
  app.add_option("--json", asked.json, "also writes the table here");
  app.add_flag("--small-pages", asked.small_pages, "buffers without huge pages");
  app.add_flag("--bandwidth", asked.bandwidth, "messages one way instead of all_reduce");
  CLI11_PARSE(app, count, arguments);
  MPI_Init(&count, &arguments);
  int status = 1;
  try {
    status = triax::bench::run(asked);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_comm_mpi: %s\n", error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}
