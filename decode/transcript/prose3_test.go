package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
)

// strangers are tongues of the styles that the weights were first met with: nothing
// of theirs is in the texts of the styles before.
var strangers = []tongue{
	{"English", []string{
		"The invoice for March was paid on the fourteenth.", "Swap the two loops and the cache misses go away.", "Basil wilts below ten degrees, so bring it inside.", "According to the manual, the valve opens at 2.5 bar.",
		"You could also pipe it through `sort -u`.", "That train leaves from platform nine.", "I renamed `fetchAll` to `fetchPage` in three places.", "Most of the delay is the DNS lookup.", "It depends on your bank; ours takes two days.",
		"Glaciers move a few centimetres a day.", "Three of the five suites passed.", "The patch is small: one guard and one test.", "Sorry about the confusion earlier!", "Add a pinch of salt once it simmers.", "Hope that clears it up 🙂",
		"Your session expired, which is why it logged you out.",
	}, []string{
		"This looks like a race between the two workers.", "Let me check the date on that invoice.", "I need the exact platform before I answer.", "Two readings are possible here, the first seems likelier.", "The question mentions March, not May.", "Probably a stale lock file.",
		"First the loop order, then the allocation.", "A table might be clearer, but one sentence will do.", "The user seems to be in a hurry.",
	}, []string{
		"When was the March invoice paid?", "make this loop faster", "which platform does the 9:40 leave from?", "Translate the second paragraph, keep the names.", "how cold is too cold for basil", "Summarise what changed since Tuesday.", "Is the valve safe at 3 bar?",
	}, []string{"Nine", "14", "platform 9", "No", "yes", "3.5", "True", "Basil", "B12", "€19.90", "Tomorrow", "2 days"}, " "},
	{"Portuguese", []string{"A fatura de março foi paga no dia catorze.", "Troque os dois laços e o problema some.", "O manjericão não gosta de frio.", "O comboio parte da linha nove.", "Quase toda a demora vem do DNS.", "Acrescentei um teste para esse caso."}, []string{"Isto parece uma corrida entre dois processos.", "Preciso de confirmar a data.", "A pergunta fala de março, não de maio."}, []string{"Quando foi paga a fatura?", "de que linha parte o comboio das 9h40?"}, []string{"sim", "Nove", "14", "Amanhã"}, " "},
	{"Turkish", []string{"Mart faturası ayın on dördünde ödendi.", "İki döngünün yerini değiştirin.", "Fesleğen soğuğu sevmez.", "Tren dokuzuncu perondan kalkıyor.", "Gecikmenin çoğu DNS sorgusu."}, []string{"Bu bir yarış durumu gibi görünüyor.", "Tarihi kontrol etmem gerek."}, []string{"Mart faturası ne zaman ödendi?", "tren hangi perondan kalkıyor"}, []string{"evet", "Dokuz", "hayır"}, " "},
	{"Vietnamese", []string{"Hóa đơn tháng ba đã được thanh toán ngày mười bốn.", "Hãy đổi chỗ hai vòng lặp.", "Húng quế không chịu được lạnh.", "Tàu khởi hành từ sân ga số chín."}, []string{"Có vẻ là lỗi tranh chấp.", "Cần kiểm tra lại ngày."}, []string{"Hóa đơn tháng ba trả khi nào?"}, []string{"vâng", "Chín", "không"}, " "},
	{"Hebrew", []string{"החשבונית של מרץ שולמה בארבעה עשר בחודש.", "החליפו בין שתי הלולאות.", "הבזיליקום לא אוהב קור.", "הרכבת יוצאת מרציף תשע."}, []string{"זה נראה כמו מרוץ בין שני תהליכים.", "צריך לבדוק את התאריך."}, []string{"מתי שולמה החשבונית?", "מאיזה רציף יוצאת הרכבת?"}, []string{"כן", "תשע", "לא"}, " "},
	{"Chinese", []string{"三月的帳單已於十四日付清。", "把兩個迴圈對調就不會有快取失誤。", "羅勒怕冷，十度以下請移到室內。", "列車從第九月台發車。", "大部分延遲來自網域查詢。"}, []string{"這看起來像是兩個行程在競爭。", "需要先確認日期。"}, []string{"三月的帳單什麼時候付的？", "九點四十的車在哪個月台？"}, []string{"第九月台", "十四日", "對"}, ""},
	{"Japanese", []string{"三月分の請求書は十四日に支払われました。", "二つのループを入れ替えてください。", "バジルは寒さに弱いです。", "電車は九番線から出ます。", "遅延の大半はDNSの検索です。"}, []string{"二つの処理が競合しているようだ。", "日付を確認する必要がある。"}, []string{"三月の請求書はいつ支払われましたか？", "バジルは何度まで耐えられますか"}, []string{"九番線", "十四日", "はい"}, ""},
	{"Polish", []string{"Faktura za marzec została opłacona czternastego.", "Zamień obie pętle miejscami.", "Bazylia nie lubi zimna.", "Pociąg odjeżdża z peronu dziewiątego.", "Większość opóźnienia to zapytanie DNS."}, []string{"To wygląda na wyścig dwóch procesów.", "Trzeba sprawdzić datę."}, []string{"Kiedy opłacono fakturę za marzec?", "z którego peronu odjeżdża pociąg"}, []string{"tak", "Dziewięć", "nie"}, " "},
	{"Arabic", []string{"دُفعت فاتورة مارس في الرابع عشر.", "بدّل بين الحلقتين.", "الريحان لا يحب البرد.", "ينطلق القطار من الرصيف التاسع.", "معظم التأخير من استعلام الأسماء."}, []string{"يبدو هذا سباقا بين عمليتين.", "يجب التحقق من التاريخ."}, []string{"متى دُفعت فاتورة مارس؟", "من أي رصيف ينطلق القطار؟"}, []string{"نعم", "تسعة", "لا"}, " "},
}

// stranger is one of strangers that prefers English.
func (m *maker) stranger() *tongue {
	if m.chance(0.4) {
		return &strangers[0]
	}
	return &strangers[m.r.IntN(len(strangers))]
}

// reaction is an answer of a stranger, in a tenth of a word or a number.
func (m *maker) reaction(t *tongue) string {
	switch m.r.IntN(20) {
	case 0, 1:
		return pick(m, t.words)
	case 2:
		return "```rust\n" + m.rust() + "```"
	case 3:
		return m.say(t, t.sentences, 1) + "\n\n```rust\n" + m.rust() + "```\n\n" + m.say(t, t.sentences, 2)
	case 4:
		return "* " + pick(m, t.sentences) + "\n* " + pick(m, t.sentences) + "\n\n### " + strings.Trim(pick(m, t.words), ".") + "\n" + m.say(t, t.sentences, 2)
	case 5:
		b, _ := json.Marshal(object{"paid": true, "day": m.r.IntN(30), "note": pick(m, t.sentences)})
		return string(b)
	case 6:
		return m.say(t, t.sentences, 30+m.r.IntN(40))
	case 7:
		return "| " + pick(m, t.words) + " | n |\n|---|---|\n| a | " + fmt.Sprint(m.r.IntN(99)) + " |\n\n" + pick(m, t.sentences)
	case 8:
		return pick(m, t.sentences) + " [1](https://docs.example.net/p/" + fmt.Sprint(m.r.IntN(999)) + ") " + pick(m, t.sentences)
	}
	return m.say(t, t.sentences, 1+m.r.IntN(7))
}

func (m *maker) rust() string {
	var b strings.Builder
	for range 2 + m.r.IntN(8) {
		fmt.Fprintf(&b, "    let v%d = page.rows()[%d].clone()?; // row %d\n", m.r.IntN(9), m.r.IntN(40), m.r.IntN(400))
	}
	return "fn rows(page: &Page) -> Result<Vec<Row>> {\n" + b.String() + "}\n"
}

// article is a page that somebody else wrote, longer than most answers.
func (m *maker) article() string {
	t := m.stranger()
	return m.say(t, t.sentences, 4+m.r.IntN(20))
}

// policy is a prompt of the system in other words than those of the other styles.
func (m *maker) policy() string {
	return "# Role\nYou are Juno, the assistant inside the Example editor.\n# Rules\n- Be brief.\n- Never invent file names.\n- Reply in the user's language.\n" + strings.Repeat("- "+m.say(&strangers[0], strangers[0].sentences, 2)+"\n", m.r.IntN(30))
}

// bits cuts a text in pieces of one to four runes.
func (m *maker) bits(text string) []string { return m.pieces(text, style{size: 2}) }

// bitsOr are a text's tokens, or its bits.
func (m *maker) bitsOr(text string) []string {
	if m.chance(0.4) {
		return m.bits(text)
	}
	return m.tokens(text)
}

func (m *maker) ponder(t *tongue) string { return m.say(t, t.thoughts, 1+m.r.IntN(6)) }
