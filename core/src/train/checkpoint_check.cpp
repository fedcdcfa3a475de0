// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint_check.hpp"

#include <optional>

#include "checkpoint/folder.hpp"
#include "train/plugin_states.hpp"
#include "train/resume_point.hpp"
#include "train/tokenizer_change.hpp"

namespace triax::train {

namespace {

/// Whether run.dir has checkpoints that this run would lose.
Refusals check_folder(const config::RunConfig& run, bool computes) {
  const bool has_checkpoints = !checkpoint::checkpoints_in(run.checkpoints()).empty();
  if (computes || run.evaluates || !has_checkpoints) return {};
  return make_refusal(ErrorCode::kConflict, {"kernels.plugin", "run.dir"},
                      "run.dir has the checkpoints of a training, but {} does not compute", run.kernels.name)
      .with_hint("choose another run.dir");
}

std::string key_of_checkpoint(const config::RunConfig& run) {
  if (run.generate) return "";
  return run.evaluates ? "--checkpoint" : "checkpoint.from";
}

} // namespace

std::string check_checkpoint(const config::RunConfig& run, const RankPlugins& plugins, bool computes, bool has_weights,
                             std::span<const executor::GlobalParameter> parameters, const checkpoint::DataContent& data,
                             CheckGuard& guarded) {
  bool is_readable = false;
  guarded("run.dir", [&] {
    guarded.refuse(check_folder(run, computes));
    is_readable = true;
  });
  if (!is_readable || !has_weights) return {};
  std::optional<ResumePoint> point;
  is_readable = false;
  guarded(key_of_checkpoint(run), [&] {
    point = resume_point(run);
    is_readable = true;
  });
  if (run.evaluates && is_readable && !point)
    guarded.refuse(
        make_refusal(ErrorCode::kMissing, {"run.dir"}, "run.dir = \"{}\" has no complete checkpoint", run.folder)
            .with_hint("train the run, which saves one, or name one with --checkpoint"));
  std::string out;
  guarded({}, [&] {
    if (!point) return;
    const checkpoint::Manifest manifest = checkpoint::read_manifest(point->folder / checkpoint::kManifestFile);
    const ResumingRun resuming{parameters, plugins.optimizer_traits(), plugins.training_options(), data};
    guarded.refuse(check_resume(run, *point, manifest, resuming));
    const std::optional<TokenizerChange> change = find_tokenizer_change(run, point->folder, manifest, data);
    if (change) guarded.refuse(check_tokenizer(run, *point, *change));
    guarded.refuse(PluginStates(run, plugins).check(manifest, point->weights_only));
    out = to_text(run, *point, manifest, data);
    if (change) out += "; " + change->text;
  });
  return out;
}

} // namespace triax::train
