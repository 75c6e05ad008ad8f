"""An image is what its digest says; a tag that moves says nothing."""

import csv
from pathlib import Path

import pytest

from store.images import Kind, Sameness, canonical, compare, parse

ONE, TWO = ("sha256:" + digit * 64 for digit in "12")


@pytest.mark.parametrize(
    ("reference", "kind"),
    [
        ("lmsysorg/sglang:v0.5.16-cu130", Kind.RELEASE),
        ("lmsysorg/sglang:dev-nightly-0820", Kind.NIGHTLY),
        ("vllm/vllm-openai:nightly-5e35a6f4f9bbc217c599692157ca985c894373f7", Kind.NIGHTLY),
        ("vllm/vllm-openai:nightly_202607011530", Kind.NIGHTLY),
        ("vllm/vllm-openai:kimi-k3", Kind.MOVING),
        ("vllm/vllm-openai:latest", Kind.MOVING),
        ("vllm/vllm-openai", Kind.MOVING),
        ("rocm/sgl-dev:rocm720-mi35x-latest", Kind.MOVING),
        ("rocm/vllm:nightly", Kind.MOVING),
        ("rocm/vllm:nightly-cu12.4", Kind.MOVING),
        ("rocm/atom:rocm7.2.1-ubuntu24.04-pytorch2.9.1-atom0.1.2", Kind.RELEASE),
        ("nvcr.io#nvidia/tensorrt-llm/release:1.2.0rc6.post2", Kind.RELEASE),
        ("lmsysorg/sglang-rocm:v0.5.17-rocm720-mi35x-20260817", Kind.RELEASE),
        ("rocm/sgl-dev:rocm720-mi35x-a8410de-20260502-DSv4", Kind.CUSTOM),
        ("ghcr.io/tile-ai/tilert:0.1.5", Kind.RELEASE),
    ],
)
def test_a_tag_is_pinned_by_version_commit_or_date_or_it_moves(reference: str, kind: Kind) -> None:
    assert parse(reference).kind is kind


def test_a_reference_has_parts() -> None:
    image = parse(f"nvcr.io#nvidia/ai-dynamo/tensorrtllm-runtime:0.8.1.post1@{ONE}")
    assert (image.registry, image.repository) == ("nvcr.io", "nvidia/ai-dynamo/tensorrtllm-runtime")
    assert (image.tag, image.digest, image.version) == ("0.8.1.post1", ONE, (0, 8, 1))


@pytest.mark.parametrize(
    ("before", "after", "answer"),
    [
        (f"a/b:latest@{ONE}", f"a/b:latest@{TWO}", Sameness.CHANGED),
        (f"a/b:v1.0@{ONE}", f"a/b:v1.1@{ONE}", Sameness.SAME),
        ("a/b:latest", "a/b:latest", Sameness.UNKNOWN),
        (f"a/b:latest@{ONE}", "a/b:latest", Sameness.UNKNOWN),
        (f"a/b:v1.0@{ONE}", "a/b:v1.0", Sameness.SAME),
        ("a/b:v1.0", "a/b:v1.0", Sameness.SAME),
        ("a/b:v1.0", "a/b:v1.1", Sameness.CHANGED),
        ("a#b/c:v1.0", "a/b/c:v1.0", Sameness.SAME),
        ("rocm/sglang:v1.0", "lmsysorg/sglang:v1.0", Sameness.CHANGED),
        (None, "a/b:v1.0", Sameness.UNKNOWN),
    ],
)
def test_sameness_is_by_digest_then_by_name_and_a_moving_tag_is_unknown(
    before: str | None, after: str, answer: Sameness
) -> None:
    assert compare(before, after) is answer
    assert compare(after, before) is answer


def test_a_digest_recorded_beside_the_name_becomes_part_of_it() -> None:
    assert canonical("a/b:latest", ONE) == f"a/b:latest@{ONE}"
    assert canonical("  ", ONE) is None


@pytest.mark.shared
def test_every_image_that_the_configs_ever_named_is_read(shared: Path) -> None:
    with (shared / "data/inferencex/config-history.csv").open(encoding="utf-8") as file:
        references = {line["image"] for line in csv.DictReader(file) if line["image"] not in ("", "TBD")}
    images = [parse(reference) for reference in references]
    assert len(images) > 250
    assert all((image.tag or image.digest) and image.repository and "#" not in image.text for image in images)
    # Tags such as `deepseek-v4-blackwell` name no version: about one in eight.
    assert sum(image.moving for image in images) < len(images) / 6
