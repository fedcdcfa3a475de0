// SPDX-License-Identifier: Apache-2.0
// The tables of the model suite, and what their files share.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model_run.hpp"
#include "triax/conformance/model_checks.hpp"

namespace triax::conformance {

using ModelCheck = CheckOf<ModelSubject>;

std::span<const ModelCheck> answer_checks();
std::span<const ModelCheck> description_checks();
std::span<const ModelCheck> gradient_checks();
std::span<const ModelCheck> order_checks();
std::span<const ModelCheck> memory_checks();
std::span<const ModelCheck> sample_checks();
std::span<const ModelCheck> dry_run_checks();
std::span<const ModelCheck> rank_checks();
std::span<const ModelCheck> step_checks();
std::span<const ModelCheck> generating_checks();

/// One rank with each type of the support.
std::vector<ModelShape> shapes_of_types(const ModelSubject& subject);
/// One rank with the most precise type.
ModelShape most_precise_shape(const ModelSubject& subject);
/// One rank, and all tensor ranks, with and without sequence parallelism.
std::vector<ModelShape> parallel_shapes(const ModelSubject& subject);

/// Those of several tensor ranks.
std::vector<ModelShape> shapes_of_several(const ModelSubject& subject);

/// Runs `body` on the ranks of a shape, with their model and its tensor group. Ranks that post different collectives
/// would wait forever.
void run_model_ranks(const ModelSubject& subject, const ModelShape& shape, Report& report,
                     const std::function<void(ModelRun&, Communicator*)>& body);

/// The subject with its vocabulary, and with vocabularies that are not divisible by 2 and 4 ranks, as far as the model
/// accepts them for the shape. One of them leaves the last of 4 ranks without a token.
std::vector<ModelSubject> with_uneven_vocabularies(const ModelSubject& subject, const ModelShape& shape);

/// The stash tensors that the forward of a layer has written.
Tensors written_stash(const ModelRun& run, std::size_t at, int microbatch = 0);

/// Recomputes what a layer lists, and compares it with the forward's. The rest of the stash must not change.
void recompute_cheaply(ModelRun& run, std::size_t at, int microbatch, Report& report);
/// Why checks of CheapRecompute are skipped; empty: they run.
std::string unless_cheap(const ModelSubject& subject);

/// Fails with the first element that differs.
inline void expect_equal(Report& report, const ModelShape& shape, std::string_view what, const Tensors& got,
                         const Tensors& expected) {
  const std::string differs = difference(got, expected);
  report.expect(differs.empty(), "{}: {}, {}", to_text(shape), what, differs);
}

/// Why checks with several tensor ranks are skipped: no communicator, or the model does not support them. Empty: they
/// run.
std::string tensor_rank_skip_reason(const ModelSubject& subject);

} // namespace triax::conformance
