// SPDX-License-Identifier: Apache-2.0
// Latency and cost of the job server with many ranks: the time for N ranks to join, exchange keys, complete a barrier,
// learn of a failure and leave, and the cost of heartbeats. One thread simulates the ranks over loopback, so the times
// include the simulation: they are upper bounds of the server's.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string>
#include <vector>

#include "control/simulated_ranks.hpp"
#include "os/open_files.hpp"

namespace {

using namespace triax;
using namespace triax::control;
using control::test::Job;
using control::test::message;
using control::test::SimulatedRanks;
using Kind = Message::Kind;

constexpr int kBarriers = 10;
constexpr int kMessages = 8; // per rank

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

double cpu_seconds(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// CPU time of the server's thread: the process's time minus the calling thread's. Valid while the process has no other
/// threads.
double server_cpu_seconds() {
  return cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
}

class Measurement {
 public:
  Measurement(int world, double limit_s) : job_(world), ranks_(job_.server->address(), world), limit_s_(limit_s) {}

  void run(double beat_s) {
    std::printf("%d ranks\n", ranks_.world());
    time("join", [&] { ranks_.join(deadline()); });
    time("every rank sets a key", [&] { all(Kind::set, "address of ", Kind::done); });
    time("every rank reads the key of its neighbour", [&] { read_neighbours(); });
    time("every rank waits for one key, which rank 0 sets", [&] { wait_for_rank_0(); });
    time(
        "barrier, mean of 10", [&] { barriers(); }, kBarriers);
    time("barrier that one rank misses, until all have timed out", [&] { missed_barrier(); });
    time("every rank sends 8 messages to the launcher", [&] { send_messages(); });
    beats(beat_s);
    time("one rank fails, until all have heard and answered", [&] { abort(); });
    time("leave", [&] { all(Kind::goodbye, "", Kind::goodbye); });
    if (ranks_.retries() > 0) std::printf("  %d connections were reopened\n", ranks_.retries());
  }

 private:
  Deadline deadline() const { return deadline_in(limit_s_); }

  template <class Body>
  void time(const char* what, Body body, int times = 1) {
    const double before = server_cpu_seconds();
    const Clock::time_point began = Clock::now();
    body();
    const double wall_ms = seconds_since(began) * 1e3 / times;
    std::printf("  %-56s %10.2f ms  server %10.2f ms\n", what, wall_ms, (server_cpu_seconds() - before) * 1e3 / times);
    std::fflush(stdout);
  }

  void all(Kind kind, const char* key, Kind answer) {
    ranks_.forget();
    ranks_.send_to_all([&](int rank) {
      return message(kind, ++id_, *key ? key + std::to_string(rank) : std::string(), std::string(64, 'v'));
    });
    ranks_.until_each(answer, 1, deadline());
  }

  void read_neighbours() {
    ranks_.forget();
    ranks_.send_to_all([&](int rank) {
      return message(Kind::get, ++id_, "address of " + std::to_string((rank + 1) % ranks_.world()));
    });
    ranks_.until_each(Kind::value, 1, deadline());
  }

  void wait_for_rank_0() {
    ranks_.forget();
    ranks_.send_to_all([&](int) { return message(Kind::get, ++id_, "one key"); });
    ranks_.send(0, message(Kind::set, ++id_, "one key", "v"));
    ranks_.until_each(Kind::value, 1, deadline());
  }

  void barriers() {
    for (int turn = 0; turn < kBarriers; ++turn) {
      ranks_.forget();
      ranks_.send_to_all([&](int) { return message(Kind::barrier, ++id_, "turn " + std::to_string(turn)); });
      ranks_.until_each(Kind::done, 1, deadline());
    }
  }

  void missed_barrier() {
    ranks_.forget();
    const int absent = ranks_.world() / 2;
    std::vector<std::uint64_t> ids;
    for (int rank = 0; rank < ranks_.world(); ++rank) {
      ids.push_back(++id_);
      if (rank != absent) ranks_.send(rank, message(Kind::barrier, id_, "missed"));
    }
    // The absent rank sends a request of another kind, which is answered at once.
    ranks_.send(absent, message(Kind::get, ids[static_cast<std::size_t>(absent)], "never set"));
    ranks_.send_to_all([&](int rank) { return message(Kind::forget, ids[static_cast<std::size_t>(rank)]); });
    ranks_.until_each(Kind::missing, 1, deadline());
  }

  void send_messages() {
    ranks_.forget();
    for (int turn = 0; turn < kMessages; ++turn)
      ranks_.send_to_all([&](int) { return message(Kind::worker_message, ++id_, "result", std::string(500, 'r')); });
    ranks_.until_each(Kind::done, kMessages, deadline());
    std::size_t taken = job_.server->drain_worker_messages().size();
    const auto expected = static_cast<std::size_t>(ranks_.world()) * kMessages;
    if (taken != expected) throw std::runtime_error(text("{} of {} messages arrived", taken, expected));
  }

  /// Sends heartbeats at the interval of real ranks, evenly spread, and measures the latency of the answers.
  void beats(double limit_s) {
    const auto world = static_cast<std::size_t>(ranks_.world());
    const double interval_s = beat_interval_s(ranks_.world(), 600);
    std::vector<Clock::time_point> sent(world);
    std::vector<double> latencies_us;
    const auto heard = [&](int rank, const Message& answer) {
      if (answer.kind == Kind::beat) latencies_us.push_back(seconds_since(sent[static_cast<std::size_t>(rank)]) * 1e6);
    };
    const double before = server_cpu_seconds();
    const Clock::time_point began = Clock::now();
    std::size_t done = 0;
    for (double now = 0; (now = seconds_since(began)) < limit_s;) {
      const auto due = static_cast<std::size_t>(now / interval_s * static_cast<double>(world));
      for (int burst = 0; done < due && burst < 64; ++done, ++burst) {
        sent[done % world] = Clock::now();
        ranks_.send(static_cast<int>(done % world),
                    message(Kind::beat, 0, "", "step 118, 0B3, waiting for 0RECV_B3 from rank 2 through comm-ucx"));
      }
      ranks_.serve(done < due ? 0 : 1, heard);
    }
    const double load = (server_cpu_seconds() - before) / seconds_since(began);
    std::sort(latencies_us.begin(), latencies_us.end());
    const auto quantile = [&](double share) {
      return latencies_us.empty()
                 ? 0
                 : latencies_us[static_cast<std::size_t>(static_cast<double>(latencies_us.size() - 1) * share)];
    };
    std::printf(
        "  heartbeats: %zu in %.1f s of %.0f due, answered after %.0f us (median), %.0f us (99 %%); server %.0f %% "
        "of a core\n",
        latencies_us.size(), limit_s, limit_s / interval_s * static_cast<double>(world), quantile(0.5), quantile(0.99),
        load * 100);
    std::fflush(stdout);
  }

  void abort() {
    ranks_.forget();
    Message failure = message(Kind::rank_failed, 0, "step 118, 0F3", "no memory");
    ranks_.send(1 % ranks_.world(), failure);
    ranks_.until_each(Kind::failed, 1, deadline());
    ranks_.forget();
    ranks_.send_to_all([&](int) {
      Message seen = message(Kind::beat, 0, "", "step 118, 0B3");
      seen.number = 1;
      return seen;
    });
    ranks_.until_each(Kind::beat, 1, deadline());
  }

  Job job_;
  SimulatedRanks ranks_;
  const double limit_s_;
  std::uint64_t id_ = 0;
};

} // namespace

int main(int count, char** arguments) {
  CLI::App program("The job server with N simulated ranks over loopback");
  std::vector<int> worlds = {64, 512, 4096};
  double beat_s = 3, limit_s = 60;
  program.add_option("--ranks", worlds, "numbers of ranks")->delimiter(',');
  program.add_option("--beat-seconds", beat_s, "duration of the heartbeat measurement");
  program.add_option("--limit-seconds", limit_s, "time limit of one phase");
  CLI11_PARSE(program, count, arguments);
  try {
    for (const int world : worlds) {
      const rlim_t wanted = 2 * static_cast<rlim_t>(world) + 256; // both ends are in this process
      if (os::raise_open_file_limit(wanted) < wanted) {
        std::printf("%d ranks: left out: %lu open files are needed (ulimit -n)\n", world,
                    static_cast<unsigned long>(wanted));
        continue;
      }
      Measurement(world, limit_s).run(beat_s);
    }
  } catch (const std::exception& error) {
    std::printf("ERROR OCCURRED: %s\n", error.what());
    return 1;
  }
  return 0;
}
