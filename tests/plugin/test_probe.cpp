// SPDX-License-Identifier: Apache-2.0
// Plugins that end or block the process that calls them: a probe process reports which plugin, and in which call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "plugin/loader.hpp"
#include "plugin/probe.hpp"
#include "scratch.hpp"
#include "triax/error.hpp"

namespace triax::plugin {

namespace {

namespace fs = std::filesystem;

constexpr CallLimits kShort{std::chrono::milliseconds(200), std::chrono::milliseconds(400)};

std::string reason_of(const std::function<std::string()>& body) {
  const ProbeResult result = run_probe(body, ProbeOutput::captured, kShort);
  return result.failure ? result.failure->plugin + ": " + result.failure->reason() : "it returned " + result.output;
}

TEST(Probe, ReturnsTheResultOfTheFunction) {
  const std::string large(300'000, 'x'); // larger than a pipe's buffer
  EXPECT_EQ(run_probe([&] { return large; }, ProbeOutput::captured).output, large);
  EXPECT_EQ(reason_of([] { return std::string(); }), "it returned ");
}

TEST(Probe, AnExceptionOfTheFunctionIsAnError) {
  const auto body = []() -> std::string { throw std::runtime_error("no such run"); };
  EXPECT_THROW(
      try { run_probe(body, ProbeOutput::captured); } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "no such run");
        throw;
      },
      Error);
}

TEST(Probe, NamesTheCallThatWasCurrent) {
  const auto dies = []() -> std::string {
    const CallScope outer("model-a", "the dry run of rank 0");
    { const CallScope inner("kernels-a", "supports()"); }
    std::raise(SIGKILL);
    return {};
  };
  EXPECT_EQ(reason_of(dies), "model-a: the dry run of rank 0 was killed by SIGKILL (Killed)");
  const auto dies_inside = []() -> std::string {
    const CallScope outer("model-a", "the dry run of rank 0");
    const CallScope inner("kernels-a", "supports()");
    std::abort();
  };
  EXPECT_EQ(reason_of(dies_inside), "kernels-a: supports() crashed with SIGABRT (Aborted)");
}

TEST(Probe, NamesTheCallThatHasClosedTheFiles) {
  const auto closes = []() -> std::string {
    const CallScope outer("model-a", "the dry run of rank 0");
    {
      const CallScope inner("kernels-a", "supports()");
      for (int file = 3; file < 256; ++file) ::close(file);
    }
    const CallScope next("optim-a", "supports()");
    return "answer";
  };
  EXPECT_EQ(reason_of(closes), "kernels-a: supports() closed file descriptors that it did not open");
}

TEST(Probe, ASignalThatNoDefectRaisesBlamesNoPlugin) {
  const auto killed = []() -> std::string {
    const CallScope call("model-a", "supports()");
    std::raise(SIGTERM);
    return {};
  };
  const ProbeResult result = run_probe(killed, ProbeOutput::captured, kShort);
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->reason(), "supports() was killed by SIGTERM (Terminated)");
  EXPECT_THAT(result.failure->hint({}), testing::StartsWith("find what ended this process: "));
}

TEST(Probe, TheTimeInWhichTheChildIsStoppedDoesNotCount) {
  const auto stopped = []() -> std::string {
    const CallScope call("model-a", "supports()");
    const pid_t own = getpid();
    if (fork() == 0) {
      ::usleep(1'500'000); // much longer than the limit of the call
      ::kill(own, SIGCONT);
      _exit(0);
    }
    std::raise(SIGSTOP);
    return "continued";
  };
  EXPECT_EQ(reason_of(stopped), "it returned continued");
}

TEST(Probe, TheErrorBeforeABacktraceIsShown) {
  const auto dies = []() -> std::string {
    const CallScope call("comm-a", "its constructor");
    std::puts("failed to open '/x/y.log'\n==== backtrace (tid: 7) ====\n 0 libucs.so.0\n=====================");
    std::fflush(stdout);
    std::raise(SIGKILL);
    return {};
  };
  EXPECT_EQ(reason_of(dies),
            "comm-a: its constructor was killed by SIGKILL (Killed); it printed: failed to open '/x/y.log'");
}

TEST(Probe, SeveralRunSideBySide) {
  constexpr std::size_t kBodies = 3;
  std::array<std::array<int, 2>, kBodies> pipes{};
  for (auto& pipe : pipes) ASSERT_EQ(::pipe(pipe.data()), 0);
  std::vector<std::function<std::string()>> bodies;
  for (std::size_t i = 0; i < kBodies; ++i) // each waits for the next one
    bodies.emplace_back([&pipes, i] {
      char byte = static_cast<char>('a' + i);
      if (::write(pipes[i][1], &byte, 1) != 1) return std::string("cannot write");
      constexpr int kLongMs = 60'000;
      pollfd next{pipes[(i + 1) % kBodies][0], POLLIN, 0};
      if (::poll(&next, 1, kLongMs) != 1 || ::read(next.fd, &byte, 1) != 1) return std::string("alone");
      return std::string(1, byte);
    });
  std::string all;
  for (const ProbeResult& result : run_probes(bodies, ProbeOutput::captured)) all += result.output;
  EXPECT_EQ(all, "bca");
  for (const auto& pipe : pipes)
    for (const int end : pipe) ::close(end);
}

TEST(Probe, ManyRunInTheirOrder) {
  std::vector<std::function<std::string()>> bodies;
  for (int i = 0; i < 50; ++i) bodies.emplace_back([i] { return std::to_string(i); });
  const std::vector<ProbeResult> results = run_probes(bodies, ProbeOutput::captured);
  ASSERT_EQ(results.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)].output, std::to_string(i));
}

TEST(Probe, OutsideOfAllCallsNoPluginIsNamed) {
  const auto dies = []() -> std::string {
    { const CallScope call("model-a", "supports()"); }
    _exit(0); // exits without an answer: not a success in spite of status 0
  };
  EXPECT_EQ(reason_of(dies), ": its call called exit(0)");
}

TEST(Probe, EachCallHasADeadlineOfItsKind) {
  const auto loops = [](CallKind kind) {
    return [kind]() -> std::string {
      const CallScope call("sched-a", "rows()", {}, kind);
      for (;;) pause();
    };
  };
  EXPECT_EQ(reason_of(loops(CallKind::call)), "sched-a: rows() did not return within 0.2 s");
  EXPECT_EQ(reason_of(loops(CallKind::slow_call)), "sched-a: rows() did not return within 0.4 s");
}

TEST(Probe, ReportsTheLastLineThatWasPrinted) {
  const auto prints = []() -> std::string {
    const CallScope call("sched-a", "its constructor");
    std::fputs("opening\nno licence found\n\n", stderr);
    _exit(3);
  };
  EXPECT_EQ(reason_of(prints), "sched-a: its constructor called exit(3); it printed: no licence found");
}

TEST(ProbeLoading, FindsEachFileThatMustNotBeLoaded) {
  const std::vector<fs::path> files = {fixture("honest"), fixture("killed"),       fixture("bad-magic"),
                                       fixture("leaves"), fixture("looping-load"), fixture("grown")};
  const bool before = is_loaded(fixture("grown")); // another test of this program may have loaded it
  const auto failures = probe_loading(files, kShort);
  ASSERT_EQ(failures.size(), 3u) << "what load() itself refuses is not listed";
  EXPECT_EQ(failures.at(fixture("killed")).reason(), "its library initializer was killed by SIGKILL (Killed)");
  EXPECT_EQ(failures.at(fixture("leaves")).reason(), "its library initializer called exit(0)");
  EXPECT_EQ(failures.at(fixture("looping-load")).reason(), "its library initializer did not return within 0.2 s");
  EXPECT_EQ(failures.at(fixture("leaves")).plugin, "leaves");
  EXPECT_EQ(is_loaded(fixture("grown")), before) << "the child has loaded it, this process has not";
}

TEST(ProbeLoading, NamesTheFileWithAnUnreadableDescriptor) {
  const std::vector<fs::path> files = {fixture("described"), fixture("bad-pointer")};
  const auto failures = probe_loading(files); // not kShort: a sanitizer takes its time to print
  ASSERT_EQ(failures.size(), 1u);
  EXPECT_EQ(failures.at(fixture("bad-pointer")).plugin, "bad-pointer");
  EXPECT_THAT(failures.at(fixture("bad-pointer")).reason(), testing::StartsWith("its descriptor "));
}

TEST(ProbeLoading, AFileThatIsRejectedInAChildIsNotLoadedHere) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "no exception passes through a sanitizer's dlopen()";
#endif
  setenv("TRIAX_FIXTURE_PROCESS", std::to_string(getpid()).c_str(), 1);
  const fs::path rejected = fixture("rejected-elsewhere");
  const std::vector<fs::path> files = {rejected, fixture("killed")};
  EXPECT_EQ(probe_loading(files).size(), 1U) << "what load() itself rejects is not listed";
  EXPECT_THROW(
      try { load(rejected, ""); } catch (const Error& error) {
        EXPECT_EQ(error.message(), "its library initializer threw an exception: not here");
        EXPECT_EQ(error.where(), rejected.string());
        throw;
      },
      Error);
  EXPECT_FALSE(is_loaded(rejected));
}

TEST(ProbeLoading, SkipsLoadedPlugins) {
  load(fixture("honest"), "");
  ASSERT_TRUE(is_loaded(fixture("honest")));
  const std::vector<fs::path> files = {fixture("honest")};
  EXPECT_THAT(probe_loading(files), testing::IsEmpty());
}

} // namespace

} // namespace triax::plugin
