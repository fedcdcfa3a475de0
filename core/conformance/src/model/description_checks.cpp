// SPDX-License-Identifier: Apache-2.0
// Descriptions of layers: parameters, cuts, stash, boundaries.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "model_check_tables.hpp"

namespace triax::conformance {

namespace {

std::string text_of(const ParamSpec& spec) {
  return text("{} {}, init {} {}, decay {}, site {}", spec.name, spec.global, static_cast<int>(spec.init.kind),
              spec.init.std, spec.decay, spec.site);
}

std::string local_text_of(const ParamSpec& spec) {
  std::string out = text("{}, local {}", text_of(spec), spec.local);
  for (const Cut& cut : spec.cuts) out += text(", cut {} of {} [{}, {})", cut.axis, cut.dim, cut.begin, cut.end);
  for (const std::string& axis : spec.partial) out += ", partial over " + axis;
  return out;
}

std::string text_of(const TensorSpec& spec) {
  return text("{} {}{}, lifetime {}, sharded {}, rows {}", spec.name, name_of(spec.dtype), spec.shape,
              static_cast<int>(spec.life), spec.sharded, spec.row_dim);
}

std::vector<std::string> description_of(const Layer& layer) {
  std::vector<std::string> out = {std::string(layer.name())};
  for (const ParamSpec& spec : layer.params()) out.push_back(local_text_of(spec));
  for (const StashSpec& spec : layer.stash())
    out.push_back(text("{} {}{}, lifetime {}, rows {}", spec.name, name_of(spec.dtype), spec.shape,
                       static_cast<int>(spec.life), spec.row_dim));
  for (const TensorSpec& spec : layer.inputs()) out.push_back("input " + text_of(spec));
  for (const TensorSpec& spec : layer.outputs()) out.push_back("output " + text_of(spec));
  return out;
}

void expect_same_texts(Report& report, const std::string& at, const std::vector<std::string>& got,
                       const std::vector<std::string>& expected) {
  report.expect(got.size() == expected.size(), "{}: {} descriptions, must be {}", at, got.size(), expected.size());
  for (std::size_t i = 0; i < std::min(got.size(), expected.size()); ++i)
    report.expect(got[i] == expected[i], "{}: \"{}\", must be \"{}\"", at, got[i], expected[i]);
}

std::vector<std::string> global_texts(const Layer& layer) {
  std::vector<std::string> out;
  for (const ParamSpec& spec : layer.params()) out.push_back(text_of(spec));
  return out;
}

std::vector<std::string> partial_texts(const Layer& layer) {
  std::vector<std::string> out;
  for (const ParamSpec& spec : layer.params()) {
    out.push_back(spec.name);
    for (const std::string& axis : spec.partial) out.back() += ", partial over " + axis;
  }
  return out;
}

/// All shapes whose layers must have the same parameters.
std::vector<ModelShape> all_shapes(const ModelSubject& subject) {
  std::vector<ModelShape> out = parallel_shapes(subject);
  for (const ModelShape& shape : shapes_of_types(subject)) out.push_back(shape);
  if (subject.support.generate) {
    out.push_back(most_precise_shape(subject));
    out.back().purpose = Purpose::generate;
  }
  return out;
}

/// A description may not change after the constructor: the engine has made memory for it.
void descriptions_stay(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : shapes_of_types(subject)) {
    ModelRun run(subject, shape);
    std::vector<std::vector<std::string>> before;
    for (std::size_t at = 0; at < run.count(); ++at) before.push_back(description_of(run.model().layer(at)));
    run.train();
    for (std::size_t at = 0; at < run.count(); ++at)
      expect_same_texts(report, text("{}, layer {} after a step, against before", to_text(shape), at),
                        description_of(run.model().layer(at)), before[at]);
  }
}

void descriptions_are_equal(const ModelSubject& subject, Report& report) {
  const CreatedModel first(subject, most_precise_shape(subject));
  for (const ModelShape& shape : all_shapes(subject))
    for (int rank = 0; rank < shape.tensor; ++rank) {
      const CreatedModel rank0(subject, shape), one(subject, shape, rank), other(subject, shape, rank);
      if (one.count() != first.count() || one.count() != rank0.count() || one.count() != other.count())
        throw Error(text("{}: count() differs from object to object", to_text(shape)));
      for (std::size_t at = 0; at < one.count(); ++at) {
        const std::string of = text("{}, rank {}, layer {}", to_text(shape), rank, at);
        expect_same_texts(report, of + " of another object", description_of(other.layer(at)),
                          description_of(one.layer(at)));
        expect_same_texts(report, of + ", against one rank in training", global_texts(one.layer(at)),
                          global_texts(first.layer(at)));
        expect_same_texts(report, of + ", against rank 0", partial_texts(one.layer(at)),
                          partial_texts(rank0.layer(at)));
      }
    }
  descriptions_stay(subject, report);
}

/// Adds names to `seen`; fails for empty and equal ones.
void add_name(std::set<std::string>& seen, std::string_view name, const std::string& what, Report& report) {
  report.expect(!name.empty(), "{} has no name", what);
  report.expect(seen.insert(std::string(name)).second, "{} \"{}\" exists twice", what, name);
}

void names_and_sites_are_unique(const ModelSubject& subject, Report& report) {
  const CreatedModel model(subject, most_precise_shape(subject));
  std::set<std::string> layers;
  std::map<std::uint32_t, std::string> sites;
  for (std::size_t at = 0; at < model.count(); ++at) {
    const Layer& layer = model.layer(at);
    const std::string name(layer.name());
    add_name(layers, name, "the layer", report);
    std::set<std::string> params, stash, inputs, outputs;
    for (const ParamSpec& spec : layer.params()) {
      const std::string parameter = text("{}, {}", name, spec.name);
      add_name(params, spec.name, text("{}: the parameter", name), report);
      const auto [found, is_new] = sites.emplace(spec.site, parameter);
      report.expect(is_new, "{} and {} have the same site {}", found->second, parameter, spec.site);
    }
    for (const StashSpec& spec : layer.stash()) add_name(stash, spec.name, text("{}: the stash tensor", name), report);
    for (const TensorSpec& spec : layer.inputs()) add_name(inputs, spec.name, text("{}: the input", name), report);
    for (const TensorSpec& spec : layer.outputs()) add_name(outputs, spec.name, text("{}: the output", name), report);
  }
}

/// A parameter on one rank.
struct RankParam {
  const ParamSpec* spec;
  int rank;
};

bool divides(const Layout& layout, const std::string& axis, Divides what) {
  const auto found = std::ranges::find(layout.axes(), axis, &Axis::name);
  return found != layout.axes().end() && found->divides == what;
}

/// A parameter on one rank: its cuts and partial sums.
void check_axes(const RankParam& of, const Layout& layout, const std::string& parameter, Report& report) {
  const ParamSpec& spec = *of.spec;
  const std::string at = text("{}, rank {}", parameter, of.rank);
  std::set<std::string> axes;
  std::set<int> dims;
  for (const Cut& cut : spec.cuts) {
    const bool has_dim = cut.dim >= 0 && cut.dim < spec.global.rank();
    report.expect(has_dim, "{}: a cut of dimension {}, but it has {} dimensions", at, cut.dim, spec.global.rank());
    report.expect(axes.insert(cut.axis).second, "{}: axis {} is in two cuts", at, cut.axis);
    report.expect(dims.insert(cut.dim).second, "{}: dimension {} is in two cuts", at, cut.dim);
    report.expect(!divides(layout, cut.axis, Divides::layers), "{}: axis {} divides layers", at, cut.axis);
    if (has_dim && cut.dim > 0)
      report.expect(spec.local[cut.dim] == cut.end - cut.begin, "{}: dimension {} is padded; only dimension 0 may be",
                    at, cut.dim);
  }
  for (const std::string& axis : spec.partial) {
    report.expect(divides(layout, axis, Divides::tensors), "{}: partial over axis {}, which does not divide tensors",
                  at, axis);
    report.expect(!axes.contains(axis), "{}: axis {} is in a cut and in `partial`", at, axis);
  }
}

/// One dimension of a parameter, over the ranks of the axis that cuts it.
void check_dimension(const std::vector<RankParam>& of_ranks, int dim, const Layout& layout, const std::string& at,
                     Report& report) {
  std::map<int, std::pair<std::int64_t, std::int64_t>> ranges; // by coordinate on the axis
  const std::int64_t size = of_ranks.front().spec->global[dim];
  for (const auto& [spec, rank] : of_ranks) {
    const Cut* const cut = spec->cut_along(dim);
    if (!cut) {
      report.expect(spec->local[dim] == size, "{}, rank {}: dimension {} has no cut, but {} of {} elements", at, rank,
                    dim, spec->local[dim], size);
      continue;
    }
    report.expect(spec->local[dim] >= cut->end - cut->begin, "{}, rank {}: dimension {} holds {} of {} elements", at,
                  rank, dim, spec->local[dim], cut->end - cut->begin);
    const std::pair range(cut->begin, cut->end);
    const auto [found, is_new] = ranges.emplace(layout.coordinate(rank, cut->axis), range);
    report.expect(is_new || found->second == range, "{}, rank {}: another rank with its index on axis {} has [{}, {})",
                  at, rank, cut->axis, found->second.first, found->second.second);
  }
  std::int64_t next = 0;
  for (const auto& [coordinate, range] : ranges) {
    report.expect(range.first == next && range.second >= range.first,
                  "{}, index {} of the axis: the range [{}, {}) of dimension {} must begin at {}", at, coordinate,
                  range.first, range.second, dim, next);
    next = range.second;
  }
  report.expect(ranges.empty() || next == size, "{}: the cuts of dimension {} end at {}, but its size is {}", at, dim,
                next, size);
}

/// One parameter, on all ranks.
void check_cuts(const std::vector<RankParam>& of_ranks, const Layout& layout, const std::string& at, Report& report) {
  const Shape& global = of_ranks.front().spec->global;
  report.expect(global.rank() > 0 && global.elements() > 0, "{}: its shape is {}", at, global);
  bool are_comparable = true;
  for (const RankParam& of : of_ranks) {
    const bool is_equal = of.spec->global == global && of.spec->local.rank() == global.rank();
    report.expect(is_equal, "{}, rank {}: its shapes are {} and {}; {} on rank 0", at, of.rank, of.spec->global,
                  of.spec->local, global);
    are_comparable &= is_equal;
    if (is_equal) check_axes(of, layout, at, report);
  }
  for (int dim = 0; dim < global.rank() && are_comparable; ++dim) check_dimension(of_ranks, dim, layout, at, report);
}

void check_cuts_of(const ModelSubject& subject, const ModelShape& shape, Report& report) {
  std::vector<std::unique_ptr<CreatedModel>> ranks;
  for (int rank = 0; rank < shape.tensor; ++rank) {
    ranks.push_back(std::make_unique<CreatedModel>(subject, shape, rank));
    if (ranks.back()->count() != ranks.front()->count())
      throw Error(text("{}: count() differs from rank to rank", to_text(shape)));
  }
  const CreatedModel& first = *ranks.front();
  for (std::size_t at = 0; at < first.count(); ++at)
    for (std::size_t i = 0; i < first.specs(at).params.size(); ++i) {
      const std::string name = text("{} tokens, {}: {}, {}", subject.support.vocab, to_text(shape), first.name(at),
                                    first.specs(at).params[i].name);
      std::vector<RankParam> of_ranks;
      for (const auto& rank : ranks)
        if (i < rank->specs(at).params.size()) of_ranks.push_back({&rank->specs(at).params[i], rank->context().rank});
      report.expect(of_ranks.size() == ranks.size(), "{}: a rank does not have it", name);
      check_cuts(of_ranks, first.layout(), name, report);
    }
}

void cuts_cover_dimensions(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : parallel_shapes(subject))
    for (const ModelSubject& sized : with_uneven_vocabularies(subject, shape)) check_cuts_of(sized, shape, report);
}

void check_boundary(const Layer& producer, const Layer& consumer, const std::string& at, Report& report) {
  const auto inputs = consumer.inputs();
  for (const TensorSpec& output : producer.outputs()) {
    const auto input = std::ranges::find(inputs, output.name, &TensorSpec::name);
    report.expect(input != inputs.end(), "{}: {} makes \"{}\", which {} does not take", at, producer.name(),
                  output.name, consumer.name());
    if (input == inputs.end()) continue;
    report.expect(input->shape == output.shape && input->dtype == output.dtype && input->sharded == output.sharded &&
                      input->row_dim == output.row_dim,
                  "{}: {} makes \"{}\", but {} takes \"{}\"", at, producer.name(), text_of(output), consumer.name(),
                  text_of(*input));
    report.expect(
        input->life != Life::input_only && input->life != Life::input_to_weight && input->life != Life::sequence,
        "{}: the input \"{}\" of {} begins with the forward, its lifetime cannot", at, input->name, consumer.name());
  }
  const auto outputs = producer.outputs();
  for (const TensorSpec& input : inputs)
    report.expect(is_data(input) || std::ranges::find(outputs, input.name, &TensorSpec::name) != outputs.end(),
                  "{}: {} takes \"{}\", which {} does not make", at, consumer.name(), input.name, producer.name());
}

void check_targets_are_left_out(const CreatedModel& generating, const std::string& at, Report& report) {
  for (std::size_t i = 0; i < generating.count(); ++i)
    for (const TensorSpec& input : generating.layer(i).inputs())
      report.expect(input.name != "targets", "{}: {} takes \"targets\", which do not exist", at, generating.name(i));
}

void boundaries_match(const ModelSubject& subject, Report& report) {
  for (const ModelShape& shape : all_shapes(subject)) {
    const CreatedModel model(subject, shape);
    const std::string at = to_text(shape);
    for (const TensorSpec& input : model.layer(0).inputs())
      report.expect(is_data(input), "{}: the first layer takes \"{}\"; only tokens and targets are data", at,
                    input.name);
    for (std::size_t i = 1; i < model.count(); ++i) check_boundary(model.layer(i - 1), model.layer(i), at, report);
    const bool generates = shape.purpose == Purpose::generate;
    if (generates) check_targets_are_left_out(model, at, report);
    const auto outputs = model.layer(model.count() - 1).outputs();
    const std::int64_t b = shape.micro;
    const bool is_loss = outputs.size() == 1 && outputs[0].name == "loss" && outputs[0].dtype == DType::f64 &&
                         outputs[0].shape == Shape{b};
    const bool is_logits = outputs.size() == 1 && outputs[0].name == "logits" && outputs[0].row_dim == 0 &&
                           outputs[0].shape == Shape{model.context().max_rows, b, model.context().vocab};
    report.expect(generates ? is_logits : is_loss, "{}: the one output of the last layer must be {}, got {}", at,
                  generates ? "logits [s, b, V]" : "loss, f64 [b]",
                  outputs.empty() ? std::string("none") : text_of(outputs[0]));
  }
}

constexpr ModelCheck kDescriptionChecks[] = {
    {"Descriptions.AreEqualInEachObject", "M4", nullptr, descriptions_are_equal},
    {"Names.AndSitesAreUnique", "M5", nullptr, names_and_sites_are_unique},
    {"Cuts.CoverEachDimensionOnce", "M6", nullptr, cuts_cover_dimensions},
    {"Boundaries.AreTakenAsMade", "M7", nullptr, boundaries_match},
};

} // namespace

std::span<const ModelCheck> description_checks() {
  return kDescriptionChecks;
}

} // namespace triax::conformance
