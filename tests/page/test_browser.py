"""The page in a real browser: it moves when asked, answers pointer and keys, and shows NumPy's numbers."""

import json

import numpy as np
import pytest

EXACT = 1e-6  # what the page promises; texts aside, all numbers are read in full from data attributes


def slide(page, control, value):
    """Put a range input somewhere, as its user would."""
    page.locator(control).evaluate("(e, v) => { e.value = v; e.dispatchEvent(new Event('input')); }", value)


def places(page, root="#plane"):
    """Where the dots are, shape (n, 2)."""
    return np.array(page.locator(f"{root} .dot").evaluate_all("all => all.map(e => [+e.dataset.x, +e.dataset.y])"))


def numbers(page, selector, name="value"):
    """The full numbers behind some elements."""
    return np.array(page.locator(selector).evaluate_all("(all, n) => all.map(e => Number(e.dataset[n]))", name))


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=0, atol=EXACT)


def test_the_slider_moves_tokens_along_straight_lines_and_says_when_it_interpolates(page, toy):
    for depth, (before, after) in ((22, (19, 22)), (7.3, (0, 19)), (19, (0, 19)), (20.5, (19, 22)), (0, (0, 19))):
        slide(page, "#depth", depth)
        share = (depth - before) / (after - before)
        state = (1 - share) * toy[f"step_{before:02d}"] + share * toy[f"step_{after:02d}"]
        close(places(page), (state - toy["plane_mean"]) @ toy["plane_axes"].T)
        exact = depth in (0, 19, 22)
        assert ("exact" in page.inner_text("#depth-badge")) == exact
        assert ("interpolated" in page.get_attribute("#depth", "aria-valuetext")) == (not exact)
        assert page.get_attribute("#steps [aria-current=step]", "data-step") == str(int(np.ceil(depth)))


def chosen(page):
    return page.locator("#tokens .token").evaluate_all("all => all.findIndex(e => e.ariaChecked === 'true')")


def shows_row(page, toy, head, query):
    assert chosen(page) == query
    close(numbers(page, "#tokens .number"), toy["step_15"][head, query])
    close(json.loads(page.get_attribute(".sum .strip", "data-values")), toy["step_16"][head, query])


def test_a_word_is_chosen_by_click_in_the_list_or_the_plane_and_by_key(page, toy):
    page.click("#tokens .token >> nth=3")
    shows_row(page, toy, 0, 3)
    page.keyboard.press("ArrowDown")
    shows_row(page, toy, 0, 4)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowUp")
    shows_row(page, toy, 0, 9)
    page.locator("#plane .dot").nth(1).click()
    shows_row(page, toy, 0, 1)
    page.select_option("#head", index=2)
    shows_row(page, toy, 2, 1)
    assert page.locator("#arcs path").count() == int((toy["step_15"][2, 1] >= 1e-3).sum())


def test_every_step_has_its_matrix_and_every_value_can_be_read_by_pointer_and_keys(page, toy):
    for k in range(1, 23):
        page.click(f"#steps [data-step='{k}']")
        value = toy[f"step_{k:02d}"]
        box = page.locator("#heat").bounding_box()
        page.mouse.move(box["x"] + 0.31 * box["width"], box["y"] + 0.55 * box["height"])
        page.mouse.move(box["x"] + 100, box["y"] + 70)
        cell = [int(i) for i in page.get_attribute("#heat-value", "data-cell").split(",")]
        found = float(page.get_attribute("#heat-value", "data-value"))
        wanted = value.reshape(-1, *value.shape[-2:])[tuple(cell)]
        assert found == wanted or abs(found - wanted) <= EXACT
        assert "×".join(map(str, value.shape)) in page.inner_text(f"#steps [data-step='{k}']")
    page.click("#steps [data-step='14']")
    page.focus("#heat")
    for key in ("ArrowRight", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    h, i, j = (int(part) for part in page.get_attribute("#heat-value", "data-cell").split(","))
    assert float(page.get_attribute("#heat-value", "data-value")) == toy["step_14"][h, i, j]
    assert f"{toy['tokens'][i]} → {toy['tokens'][j]}" in page.inner_text("#heat-value")


def test_an_edit_of_the_last_word_changes_earlier_tokens_by_exactly_zero(page, toy):
    for k, word in enumerate(toy["edit_words"]):
        page.select_option("#edit", str(k + 1))
        assert page.get_attribute("#causal-verdict", "data-earlier") == "0"
        assert "exactly 0" in page.inner_text("#causal-verdict")
        assert str(word) in page.inner_text("#sentence ins")
        change = np.abs(toy["edited_22"][k] - toy["step_22"]).max(axis=1)
        close(numbers(page, "#causal rect[data-step='22']", "change"), change)
        assert (numbers(page, "#causal rect:not([data-token='9'])", "change") == 0).all()
    page.uncheck("#mask")
    opened = np.abs(toy["open"][3] - toy["open"][0]).max(axis=1)
    close(numbers(page, "#causal rect", "change"), opened)
    assert float(page.get_attribute("#causal-verdict", "data-earlier")) == pytest.approx(opened[:-1].max(), abs=EXACT)
    page.select_option("#edit", "0")
    assert "Nothing was edited" in page.inner_text("#causal-verdict")


def test_both_norms_show_the_moments_before_and_after(page, toy):
    for token, shift in ((0, 0), (4, 12), (9, 24)):
        page.select_option("#norm-token", str(token))
        slide(page, "#shift", shift)
        wanted = toy["moments"][:, shift, token]
        close(numbers(page, "#moments td[data-value]").reshape(3, 3), wanted)
        close(numbers(page, "#norm-plane [data-norm]", "mean"), wanted[:, 0])
        close(numbers(page, "#norm-plane [data-norm]", "std"), wanted[:, 1])
        x = toy["step_00"][token] + toy["shifts"][shift]
        rows = numbers(page, "#vectors rect").reshape(3, 16)
        close(rows, [x, toy["layer_norm"][shift, token], toy["rms_norm"][shift, token]])
        close(rows[1], (x - x.mean()) / np.sqrt(x.var() + 1e-5))


def test_variants_and_temperatures_switch_the_flow_and_its_gaussian(page, study):
    for case in study.cases[2:]:
        run = study.select(**case)[0]
        page.check(f"input[name=variant][value={case['variant']}]", force=True)
        page.check(f"input[name=beta][value='{case['beta']:g}']", force=True)
        for k in (0, 3, 6):
            slide(page, "#time", k)
            close(places(page, "#flow-tokens"), run["points"][min(k, len(run["times"]) - 1)])
            laws = page.locator("#flow-gaussian [data-covariance]")
            if "gaussian_times" not in run:
                assert laws.count() == 0
                assert "no Gaussian reduction" in page.inner_text("#flow-verdict")
                continue
            last = min(k, len(run["gaussian_times"]) - 1)
            found = json.loads(laws.first.get_attribute("data-covariance"))
            close(np.reshape(found, (2, 2)), run["gaussian_covariances"][last])
        dead = "words blow up" in page.inner_text("#flow-verdict")
        assert dead == np.isfinite(run["blow_up"])
        if np.isfinite(run.get("gaussian_blow_up", np.nan)):
            found = float(page.get_attribute("#flow-verdict", "data-gaussian-blow-up"))
            assert found == pytest.approx(run["gaussian_blow_up"], abs=EXACT)


def test_a_setting_that_the_record_lacks_gives_way_to_one_that_it_has(page):
    page.check("input[name=variant][value=linear]", force=True)
    page.check("input[name=beta][value='4']", force=True)
    assert page.is_checked("input[name=variant][value=softmax]")
    page.check("input[name=variant][value=l2]", force=True)
    assert page.is_checked("input[name=beta][value='1']")


def test_nothing_moves_unasked_and_play_can_be_paused_by_key(page):
    def depth():
        return float(page.input_value("#depth"))

    page.wait_for_timeout(150)
    assert (depth(), page.input_value("#time")) == (0, "0")
    page.click("#play")
    page.wait_for_function("document.getElementById('depth').value > 0.2")
    assert page.get_attribute("#play", "aria-pressed") == "true"
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Space")
    assert page.get_attribute("#play", "aria-pressed") == "false"
    before = depth()
    page.wait_for_timeout(100)
    assert depth() == before
    page.keyboard.press("n")
    assert depth() == np.floor(before) + 1
    page.keyboard.press("p")
    page.keyboard.press("p")
    assert depth() == max(np.floor(before) - 1, 0)
    page.click("#flow-play")
    page.wait_for_function("document.getElementById('time').value > 0")
    page.click("#flow-play")


def test_another_layer_can_be_chosen_without_its_attention(page, study):
    depths = study.select(part="depths")[0]
    slide(page, "#depth", 22)
    page.click("#tokens .token >> nth=9")
    page.select_option("#model", "depths")
    assert page.input_value("#depth") == "0"
    slide(page, "#depth", 2)
    close(places(page), depths["places"][2])
    assert "not recorded" in page.inner_text("#attention-note")
    assert page.locator("#head-label").is_hidden()
    assert page.locator("#steps button").count() == 7


def test_chinese_and_back(page):
    page.click("#language")
    assert page.get_attribute("html", "lang") == "zh-Hans"
    headings = page.locator("h1, h2, h3").all_inner_texts()
    assert all(any("\u4e00" <= sign <= "\u9fff" for sign in heading) for heading in headings), headings
    assert "查询" in page.inner_text("#steps [data-step='2']")
    page.click("#language")
    assert page.get_attribute("html", "lang") == "en"
    assert page.inner_text("h1") == "Two views of one layer"


def test_dark_follows_the_system_and_the_button(page):
    def paper():
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    page.emulate_media(color_scheme="light")
    assert paper() == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    assert paper() == "rgb(20, 24, 28)"
    page.click("#theme")
    assert paper() == "rgb(255, 255, 255)"


NAMELESS = """() => [...document.querySelectorAll("button, select, input, canvas, svg[role=img]")]
  .filter(e => !(e.getAttribute("aria-label") || e.labels?.[0]?.textContent.trim()
    || e.tagName === "BUTTON" && e.textContent.trim())).map(e => e.outerHTML.slice(0, 80))"""


def test_every_control_has_a_name_and_a_narrow_screen_needs_no_sideways_scrolling(page):
    assert page.evaluate(NAMELESS) == []
    for width in (390, 820):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 900})
