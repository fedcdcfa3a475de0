// SPDX-License-Identifier: Apache-2.0
#include "train/offload_file.hpp"

#include <algorithm>
#include <numeric>
#include <system_error>
#include <utility>
#include <vector>

#include "os/folder_access.hpp"
#include "os/scratch_file.hpp"
#include "report/units.hpp"
#include "triax/text.hpp"

namespace triax::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kHint = "free space there, or choose another folder with memory.offload_path";

class OffloadFile final : public executor::StateStorage {
 public:
  explicit OffloadFile(os::ScratchFile file) : file_(std::move(file)) {}
  void read(std::uint64_t offset, std::span<std::byte> to) override { file_.read(offset, to); }
  void write(std::uint64_t offset, std::span<const std::byte> from) override { file_.write(offset, from); }

 private:
  os::ScratchFile file_;
};

/// Creates the folder and the file.
std::unique_ptr<executor::StateStorage> make_offload_file(const config::RunConfig& run, int rank, std::uint64_t bytes) {
  const fs::path& folder = offload_folder(run);
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed)
    throw Error("cannot be created: " + failed.message(), folder.string(),
                "allow this user to write there, or choose another folder with memory.offload_path");
  return std::make_unique<OffloadFile>(os::ScratchFile(folder, text(".offload-rank-{}", rank), bytes, kHint));
}

} // namespace

const fs::path& offload_folder(const config::RunConfig& run) {
  return run.memory.offload_path.empty() ? run.folder : run.memory.offload_path;
}

void open_offloaded(const config::RunConfig& run, int rank, const RankPlugins& plugins, executor::RankState& state) {
  executor::OffloadedState* const offloaded = state.offloaded();
  if (!offloaded) return;
  if (offloaded->is_on_host()) {
    offloaded->use_host(plugins.host()->start(run));
  } else {
    offloaded->open(make_offload_file(run, rank, offloaded->storage_bytes()));
  }
}

Refusals check_offload_folder(const config::RunConfig& run, const Preflight& preflight, const Placement& placement) {
  std::vector<std::uint64_t> files; // of each rank
  for (const RankPlan& plan : preflight.plans) files.insert(files.end(), plan.ranks.size(), plan.offload_bytes);
  std::ranges::sort(files);
  const std::size_t ranks = std::min(files.size(), static_cast<std::size_t>(placement.ranks));
  const std::uint64_t needed =
      std::accumulate(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(ranks), std::uint64_t{0});
  if (needed == 0) return {};
  const fs::path& folder = offload_folder(run);
  const char* const key = run.memory.offload_path.empty() ? "run.dir" : "memory.offload_path";
  if (const std::string problem = os::why_not_writable(folder); !problem.empty())
    return make_refusal(ErrorCode::kNotWritable, {"memory.offload", key}, "{} = \"{}\" cannot be written: {}", key,
                        folder.string(), problem)
        .with_hint("choose another folder with {}", key);
  std::uint64_t there = 0;
  try {
    there = os::free_bytes(folder);
  } catch (const Error& error) {
    return make_refusal(ErrorCode::kNotWritable, {"memory.offload", key}, "{} = \"{}\": {}", key, folder.string(),
                        error.what())
        .with_hint("choose another folder with {}", key);
  }
  if (needed <= there) return {};
  return make_refusal(ErrorCode::kOutOfMemory, {"memory.offload", key},
                      "memory.offload = \"disk\" needs {} for the files of {} in {} = \"{}\", which has {} free",
                      report::bytes_text(needed), report::counted_text(static_cast<std::int64_t>(ranks), "rank"), key,
                      folder.string(), report::bytes_text(there))
      .with_hint("{}", kHint);
}

} // namespace triax::train
