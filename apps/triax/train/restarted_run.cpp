// SPDX-License-Identifier: Apache-2.0
#include "train/restarted_run.hpp"

#include <sys/wait.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/errors_out.hpp"
#include "common/result_out.hpp"
#include "common/verbs.hpp"
#include "config/text_file.hpp"
#include "launch/environment.hpp"
#include "os/child_process.hpp"
#include "os/stderr_output.hpp"
#include "os/supervised_process.hpp"
#include "train/train_result.hpp"

namespace triax::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxIdleStarts = 3;

/// A start of the run that has ended.
struct Ended {
  int status = 0;      // exit status, in a shell's form
  bool failed = false; // a rank or the process was lost, or a rank had an error
  bool begun = false;  // a step was done
  std::string reason;
  std::string object; // JSON object that --json prints
};

Ended ended(const os::SupervisedProcess::End& end, const TrainArguments& arguments) {
  Ended out;
  std::string_view sent = end.sent;
  out.begun = sent.starts_with(kBegunMessage);
  if (out.begun) sent.remove_prefix(kBegunMessage.size() + 1);
  const bool killed = WIFSIGNALED(end.status);
  out.status = killed ? 128 + WTERMSIG(end.status) : WEXITSTATUS(end.status);
  if (const Json object = Json::parse(sent, nullptr, false); object.is_object()) {
    out.failed = true;
    out.object = sent;
    out.reason = object.value("reason", "");
    if (out.reason.empty()) out.reason = "no rank was named; failure.json has what is known";
    if (const Json& rank = object["rank"]; rank.is_number())
      out.reason = text("rank {}: {}", rank.get<int>(), out.reason);
  } else if (killed) {
    out.failed = true;
    out.reason = "the process of the run was " + os::how_it_ended(end.status);
    out.object = failure_text(arguments, {}, -1, out.reason, out.status);
  }
  return out;
}

/// A restart continues also after --fresh, once there is something to continue.
std::vector<config::Override> continuing(std::vector<config::Override> overrides) {
  std::erase_if(overrides, [](const config::Override& one) { return one.key == "checkpoint.resume"; });
  overrides.push_back({"checkpoint.resume", "auto"});
  return overrides;
}

/// Errors are located at their step. The error of a lost rank is not: it may happen again at another step.
bool is_same_error(const std::string& reason, const std::string& before) {
  const std::size_t at = reason.find("step "), at_before = before.find("step "); // another rank may report it first
  return at != std::string::npos && at_before != std::string::npos && reason.substr(at) == before.substr(at_before);
}

/// Why there is no other start, or empty.
std::string why_not(const Ended& end, const std::string& before, int restarts, int max, int idle_starts) {
  if (is_same_error(end.reason, before)) return "the same error at the same step";
  if (idle_starts == kMaxIdleStarts) return text("{} starts have failed before a step ended", idle_starts);
  if (restarts == max) return text("{} of {} restarts are used", restarts, max);
  return {};
}

/// Why this process cannot start the run again.
std::optional<config::Diagnostic> refusal(const TrainArguments& arguments, int max,
                                          const std::optional<launch::Environment>& environment) {
  if (environment)
    return config::diagnostic(
        ErrorCode::kUnsupported,
        text("--max-restarts = {}: {} has started the ranks, so Triax cannot start them again", max,
             launch::name_of(environment->launcher)),
        "leave it out, and let the launcher repeat the command: it continues from the last checkpoint (torchrun "
        "--max-restarts, sbatch --requeue)");
  if (config::is_piped(arguments.file))
    return config::diagnostic(ErrorCode::kUnsupported,
                              text("{}: is standard input or a pipe, but each of the starts that --max-restarts allows "
                                   "reads the TOML itself",
                                   arguments.file),
                              "write it to a file");
  return std::nullopt;
}

} // namespace

int train_with_restarts(const TrainArguments& arguments, int max,
                        const std::function<int(const TrainArguments&)>& train) {
  std::optional<launch::Environment> environment;
  try {
    environment = launch::find_environment([](const char* name) { return std::getenv(name); });
  } catch (const Error&) { // one start reports it
    return train(arguments);
  }
  if (const auto refused = refusal(arguments, max, environment)) {
    if (environment && environment->rank != 0) return kRefused; // rank 0 prints it
    return TrainReport(arguments).refused({*refused});
  }
  TrainArguments now = arguments;
  now.restart.max = max;
  int idle_starts = 0; // one after another
  while (true) {
    os::SupervisedProcess process;
    if (process.is_copy()) {
      now.supervised = &process;
      return train(now);
    }
    const os::SupervisedProcess::End end = process.wait();
    const Ended of = ended(end, now);
    if (!of.failed || end.signal) {
      if (of.failed && os::stderr_accepts()) print_problem(of.reason);
      if (of.failed && arguments.json) result_out() << of.object;
      return of.status;
    }
    const std::string before = now.restart.reason;
    idle_starts = of.begun ? 0 : idle_starts + 1;
    if (const std::string why = why_not(of, before, now.restart.number, max, idle_starts); !why.empty()) {
      if (os::stderr_accepts()) print_problem("not restarted: " + why);
      if (arguments.json) result_out() << of.object;
      return of.status;
    }
    now.restart = {now.restart.number + 1, max, of.reason, now.restart.began};
    if (of.begun) now.overrides = continuing(arguments.overrides);
  }
}

} // namespace triax::app
