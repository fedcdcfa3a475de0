// SPDX-License-Identifier: Apache-2.0
// fork() without exec(): the function needs the configuration and libraries of this process, and the TOML may come
// through a pipe, which can be read only once.
#include "plugin/probe_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <new>

#include "os/errno_text.hpp"
#include "os/signal_name.hpp"
#include "os/write_all.hpp"
#include "plugin/fault_handler.hpp"
#include "plugin/loader.hpp"
#include "triax/error.hpp"

namespace triax::plugin {

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kReturned = 'R', kThrew = 'E'; // first byte of the child's answer

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close_now(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  void close_now() {
    if (number_ >= 0) close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

/// A CallRecord in memory that a child shares with its parent.
class SharedRecord {
 public:
  explicit SharedRecord(const CallLimits& limits) {
    void* const memory = mmap(nullptr, sizeof(CallRecord), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Error(text("cannot map memory for a probe process: {}", errno_text()));
    record_ = new (memory) CallRecord;
    record_->limits = limits;
  }
  ~SharedRecord() { munmap(record_, sizeof(CallRecord)); }
  SharedRecord(const SharedRecord&) = delete;
  SharedRecord& operator=(const SharedRecord&) = delete;
  CallRecord& operator*() const { return *record_; }
  CallRecord* operator->() const { return record_; }

 private:
  CallRecord* record_ = nullptr;
};

/// An unnamed file for the child's output; none if the child writes to its parent's streams.
Descriptor capture_file(ProbeOutput output) {
  if (output == ProbeOutput::inherited) return Descriptor(-1);
  const int number = memfd_create("triax-probe", MFD_CLOEXEC);
  if (number < 0) throw Error(text("cannot capture the output of a probe process: {}", errno_text()));
  return Descriptor(number);
}

std::string answer_of(const std::function<std::string()>& body) {
  try {
    return kReturned + body();
  } catch (const std::exception& error) {
    return kThrew + std::string(error.what());
  }
}

/// Never returns: exit handlers of the parent must not run in the child.
[[noreturn]] void be_child(const std::function<std::string()>& body, CallRecord& record, int out, int captured,
                           pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1); // the parent ended before prctl()
  if (captured >= 0) {
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO); // standard input belongs to the parent
    dup2(captured, STDOUT_FILENO);
    dup2(captured, STDERR_FILENO);
  }
  record_calls(&record);
  record_faults(record);
  write_all(out, answer_of(body)); // if this fails, the parent has ended, and so does this process
  _exit(0);
}

/// Reads what has arrived; returns false at the end of the stream.
bool read_some(int in, std::string& answer) {
  char buffer[4096];
  for (;;) {
    const ssize_t size = read(in, buffer, sizeof buffer);
    if (size > 0) {
      answer.append(buffer, static_cast<std::size_t>(size));
    } else if (size == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
}

struct ChildEnd {
  std::string answer;
  int status = 0; // of waitpid()
  bool timed_out = false;
};

/// Ends a child whose call exceeded its limit: first with SIGABRT, whose handler records the plugin on its stack.
void end_child(pid_t child, Clock::time_point deadline) {
  constexpr auto kGrace = std::chrono::seconds(2);
  kill(child, Clock::now() < deadline + kGrace ? SIGABRT : SIGKILL);
}

/// Reads the answer until the child has ended. Ends the child if its current call exceeds its limit.
ChildEnd wait_for(pid_t child, int in, const CallRecord& record) {
  constexpr auto kPoll = std::chrono::milliseconds(20); // detects the end of a child whose children keep the pipe open
  ChildEnd end;
  pollfd waiting{in, POLLIN, 0};
  for (;;) {
    poll(&waiting, 1, static_cast<int>(kPoll.count()));
    if (waiting.fd >= 0 && !read_some(in, end.answer)) waiting.fd = -1;
    if (waitpid(child, &end.status, waiting.fd < 0 && !end.answer.empty() ? 0 : WNOHANG) == child) break;
    const Clock::time_point deadline{Clock::duration(record.deadline.load(std::memory_order_acquire))};
    if (Clock::now() < deadline) continue;
    end.timed_out = true;
    end_child(child, deadline);
  }
  read_some(in, end.answer);
  return end;
}

/// The last non-empty line, without its line end.
std::string last_line(int file) {
  if (file < 0) return {};
  constexpr off_t kMax = 1024;
  const off_t size = lseek(file, 0, SEEK_END), begin = std::max<off_t>(0, size - kMax);
  std::string tail(static_cast<std::size_t>(std::max<off_t>(0, size - begin)), '\0');
  const ssize_t got = pread(file, tail.data(), tail.size(), begin);
  tail.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  while (tail.ends_with('\n')) tail.pop_back();
  return tail.substr(tail.rfind('\n') + 1); // npos + 1 is 0
}

std::string outcome_of(const ChildEnd& end, const CallLimits& limits, const PluginCall& call) {
  if (end.timed_out) {
    const bool plan = call.kind == CallKind::plan;
    const std::chrono::duration<double> limit = plan ? limits.plan : limits.call;
    return text("did not return within {} s", limit.count());
  }
  if (!WIFSIGNALED(end.status)) return text("called exit({})", WEXITSTATUS(end.status));
  const int signal = WTERMSIG(end.status);
  const bool fault = std::ranges::find(kFaults, signal) != std::end(kFaults);
  return text("{} {} ({})", fault ? "crashed with" : "was killed by", signal_name(signal), strsignal(signal));
}

} // namespace

std::string ProbeFailure::reason() const {
  const std::string said = printed.empty() ? std::string() : text("; it printed: {}", printed);
  return text("{} {}{}", call.empty() ? "its call" : call, outcome, said);
}

std::string probe_hint(const std::filesystem::path& file) {
  const std::string debug =
      file.empty()
          ? std::string()
          : text("; to debug it: gdb -ex 'set follow-fork-mode child' -ex run --args triax plugins describe {}", file);
  return "this is a defect of the plugin: use another plugin or version, or report it to its author" + debug;
}

ProbeResult run_probe(const std::function<std::string()>& body, ProbeOutput output, const CallLimits& limits) {
  const SharedRecord record(limits);
  const Descriptor captured = capture_file(output);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw Error(text("no pipe: {}", errno_text()));
  Descriptor in(ends[0]), out(ends[1]);
  fcntl(out.number(), F_SETFL, 0); // the child's writes may block
  std::cout.flush();
  std::fflush(nullptr); // else both processes would write what is buffered
  const pid_t parent = getpid(), child = fork();
  if (child < 0) {
    throw Error(text("cannot start a process to probe plugins in: {}", errno_text()), {},
                "raise the limit on processes (ulimit -u), or end others");
  }
  if (child == 0) be_child(body, *record, out.number(), captured.number(), parent);
  out.close_now();
  ChildEnd end = wait_for(child, in.number(), *record);
  const bool answered = WIFEXITED(end.status) && WEXITSTATUS(end.status) == 0 && !end.answer.empty();
  if (answered && end.answer.front() == kReturned) return {end.answer.substr(1), std::nullopt};
  if (answered) throw Error(end.answer.substr(1));
  const PluginCall& call = record->current;
  ProbeFailure failure{call.plugin, call.file, call.what, outcome_of(end, limits, call), last_line(captured.number())};
  if (const std::filesystem::path file = record->fault_file; !file.empty() && is_loaded(file)) {
    failure.plugin = file.stem();
    failure.file = file;
  }
  return {{}, std::move(failure)};
}

} // namespace triax::plugin
