// SPDX-License-Identifier: Apache-2.0
// sched-file: the schedule of a CSV file in PyTorch's format: one line per pipeline rank, one action per cell.
// For schedules from a planner or written by hand. It reads the output of `triax schedule --format csv`, and what
// PyTorch dumps as compute_only.
#include <filesystem>
#include <string>
#include <system_error>
#include <triax/plugin.hpp>
#include <triax/schedule_csv.hpp>
#include <triax/scheduler.hpp>
#include <utility>

namespace {
using namespace triax;

constexpr triax_option kOptions[] = {
    option_path("file", nullptr, "CSV of F, B, I and W: a line per pipeline rank, an action per cell"),
};

/// Lists every difference in shape, with the configuration keys that set it.
Refusals fits(const std::string& file, const PipelineShape& has, const PipelineShape& run) {
  std::string differs, wanted;
  std::vector<std::string> keys = {"schedule.file"};
  const auto add = [](std::string& out, const char* separator, const std::string& more) {
    out += (out.empty() ? "" : separator) + more;
  };
  const auto compare = [&](const char* letter, int of_file, int of_run, const std::string& origin,
                           const char* assignment, const std::vector<std::string>& set_by) {
    if (of_file == of_run) return;
    keys.insert(keys.end(), set_by.begin(), set_by.end());
    add(differs, "; ", text("{} = {} in the file, {} in the run", letter, of_file, origin));
    add(wanted, ", ", text(assignment, of_file));
  };
  compare("p", has.pipeline, run.pipeline, text("parallel.pipeline = {}", run.pipeline), "parallel.pipeline = {}",
          {"parallel.pipeline"});
  compare("v", has.chunks, run.chunks, text("parallel.chunks = {}", run.chunks), "parallel.chunks = {}",
          {"parallel.chunks"});
  compare("m", has.microbatches, run.microbatches,
          text("batch.global / (parallel.data x batch.micro) = {}", run.microbatches),
          "batch.global = {} x parallel.data x batch.micro", {"batch.global", "parallel.data", "batch.micro"});
  if (differs.empty()) return {};
  return make_refusal(ErrorCode::kConflict, keys, "schedule.file: {} has another shape than the run: {}", file, differs)
      .with_hint("set {}, or name another file", wanted);
}

class File final : public Scheduler {
 public:
  explicit File(const PluginContext& context) : file_(context.options.path("file")) {}

  Refusals supports(const PipelineShape& shape) const override {
    std::error_code unknown;
    const auto type = std::filesystem::status(file_, unknown).type();
    if (!unknown && type != std::filesystem::file_type::regular && type != std::filesystem::file_type::directory)
      return make_refusal(ErrorCode::kNotReadable, {"schedule.file"},
                          "schedule.file: {} is a pipe or a device, but each rank reads the file", file_.string())
          .with_hint("write the schedule to a file");
    try {
      return fits(file_.string(), read_schedule_csv(file_).shape, shape);
    } catch (const Error& error) {
      const bool is_missing = type == std::filesystem::file_type::not_found;
      return make_refusal(is_missing ? ErrorCode::kNotFound : ErrorCode::kNotReadable, {"schedule.file"},
                          "schedule.file: {}", error.message())
          .with_hint("{}", error.hint());
    }
  }

  Schedule rows(const PipelineShape& shape) const override {
    CsvSchedule read = read_schedule_csv(file_);
    if (const Refusals same = fits(file_.string(), read.shape, shape);
        !same.empty()) // the file has changed since supports()
      throw to_error(same);
    return std::move(read.schedule);
  }

 private:
  std::filesystem::path file_;
};

} // namespace

TRIAX_PLUGIN(triax::Scheduler, File, "sched-file", "0.1.0", "the schedule that a CSV file holds", kOptions)
