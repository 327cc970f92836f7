// English words that stand for the digits of a call code: a word's place in the list is its value, so the order is part of it.
//
// The list is Conclave's own, under its licence. Words are common, of 4 to 9 letters. No two share their first four letters, differ by one letter or by two
// that changed places, or sound alike. None is a number, or a word that people say while they compare. `code-words.test.mjs` checks it.

export default `
abacus abbey ability aboard above absence absorb abstract academy accent account acorn acrobat acrylic action actor adapt address adjust admit adobe adorable
adult advance adverb advice aerial affection afford afternoon agency agile agree airport aisle alarm album alchemy alert alfalfa algebra allergy alligator
almond aloft alpaca alphabet alpine altitude aluminum always amateur amazing amber ambition amethyst amount amphibian amplify amulet amuse anagram analyst
anatomy anchor ancient anecdote anemone angel animal ankle announce annual antenna anthem antique anvil apology appear applause april apron aquarium arcade
archer arctic arena armchair armor aroma arrange arrival artist artwork ascend ashore asleep asparagus aspect asphalt assemble assist asteroid astonish
astronaut athlete atlas atom atrium attach attend attic attract auburn audible august aunt author automatic autumn avalanche average aviator avocado avoid
awake award awkward awning axis axle azalea babble baby bachelor badge badminton bagel baggage bagpipe bakery balance balcony ballad bamboo banana bangle
banjo bank banner banquet barber bargain baritone barley barn barometer barrel basement basil basket bassoon batch bathtub battery bazaar beacon beaker bean
beard beautiful become bedroom beehive beetle behave beige believe bench beneath berry beverage bicycle bigger bingo biology birch birthday biscuit bison
blackbird blanket blazer blend blink blizzard block blossom blouse bluebell boat bobbin bobcat body boiler bold bonfire bonus bookcase boomerang boost boring
boss botany bottom boulder bounce bouquet boutique bowl boxer bracelet braid branch brass brave bread breeze brick bright brilliant broccoli bronze brook
brother brown brush bucket buddy budget buffet bugle build bulb bulldog bumper bundle bungalow bunny bureau burger burrow bushel business butcher button buyer
cabbage cabin cable caboose cactus cafe calcium calendar calf calorie camel campus canal candidate canine canoe canteen canvas canyon capable capital capsule
captain caramel carbon career cargo carnival carousel carpet carrot cartoon carve cascade cashew cassette castle casual catalog category catfish cathedral
cauldron cavern ceiling celery cell cement century ceramic cereal chain chalk chamber chance chapter charm chase checkers cheddar cheese chef chemistry cherry
chess chicken child chimney chipmunk chisel chocolate choir choose chopstick chorus chrome chuckle cinder cinema cinnamon circle citadel citizen citrus city
civil clarity classic clay clean clerk clever client cliff climate clinic cloak clockwork closet clothing cloud clown club clumsy cluster coach coaster cobalt
cobra cockatoo cocoa coffee cogwheel coliseum collect colony comb comedy comfort comic common company concert condor congress conifer convoy cookie copper
copy corduroy coriander corkscrew corner cosmos costume cotton cougar country couple courage cousin coyote crab cradle crane crater crawler crayon creature
credit creek crescent crew cricket crimson crisp critic crocus croissant croquet cross cruise crumb crust crystal cube cuckoo cucumber culture cupboard
cupcake curator curious curly current curtain cushion custom cutlery cycle cylinder cymbal cypress dachshund daffodil daisy damp dancer dandelion daring
darkness dashboard data daughter dawn daylight dazzle dealer debate debut decade december decimal deer degree delay delegate deliver delta denim density
dentist deposit depth deputy derby desert design desk destiny detail develop device dewdrop diagram dialogue diamond diary dice diesel dill dimension dimple
dinghy dinosaur diploma dirt disguise dish display distant dizzy doctor document dodge doghouse dollar dolphin domain donate donkey doorbell dormitory dosage
dough dove downhill dragon drama drawer dream dress driftwood drive drizzle drop drum duchess duckling duet dune duty dynamic eager eagle early earphone
earring earth easel easter easy echo eclair eclipse ecology economy ecosystem edge edit effort eggplant elastic elbow elder elegant element elephant elevator
elite email embark emblem embrace emerald emotion emperor employ empty enamel encore endless energy engage engine engrave enjoy enlarge enormous entire
entrance envelope envy enzyme episode epoch eraser erosion errand erupt escort espresso essay essence estate eternal evaluate event evergreen evident evolve
exact example excellent excite exclaim exercise exhibit exotic expand explain express eyebrow eyelid fabric fabulous facet factory faculty fade fairway faith
falcon family famous fancy fanfare fantasy farewell farmer fascinate fashion fasten fathom favorite feast feature february federal feed feline fence fern
ferret fertile festoon fetch fever fiber fiction fiddle fidelity field figure filament file filter final finesse finger firefly firm fisher fitness fixture
flagpole flamingo flannel flash flat flavor flaxseed flea fleece flexible flight flint flood floral flourish flower fluent fluff flute flyer foam focus foggy
foghorn foil folder folklore follow fondue football forest forget fork formula fortune forum forward fossil foster fountain fragile frame freckle freedom
freight frequent fresh friend fringe frisbee frog frontier frost frozen fruit fudge fuel function funnel furlough furnace future fuzzy gadget gala gallop
galoshes gangway garage garden garlic garment gasoline gate gather gauge gazebo gear gecko gemini gemstone general genre gentle genuine geography geology
geometry geranium gerbil geyser ghost giant gift gigantic giggle gingham giraffe give glacier glad glamour glass gleam gleeful glider glimpse glitter globe
glory glucose glue goal goblet golden gondola good gopher gorgeous gorilla gourd govern gown graceful gradual grain grammar grand graphite gravity grease
green greyhound griddle grill grip grizzly grocer groom grotto group grove growth guard guava guess guidance guitarist gulf gully gumball gumdrop guppy guru
gust gutter gymnast gypsum gyroscope habit hacksaw hail haircut halibut hallway halogen hamburger hammer hamster handsome happy harbor hardware harmony
harness harpoon harvest hawk haystack hazel headline healthy heart heavy hedgehog height helium helmet help hemlock herald heritage heron herring hesitate
hexagon hibiscus hickory hidden highway hiker hilltop hinge history hobby hockey holiday holly homemade honest hoof hope hopscotch horizon horn horoscope
horse hostess hotel hourglass household hover hubcap huge hull human humble humid hummus humor hungry hurdle hurry husky hyacinth hybrid hydrant hygiene hymn
iceberg icicle icing iconic idea identity igloo ignite iguana image immense immune implement import improve impulse inbox inch include income increase index
indigo indoor industry infant infinite inform infrared inhale inkwell inner inquire inside inspire install integer invent invite invoice iodine iris island
isolate isotope italic item ivory jackal jaguar jamboree janitor january jargon jasmine javelin jazz jealous jeans jeep jellyfish jersey jester jewel jigsaw
jogger join joke jotter journal joyful joystick jubilee judo juggler juice jukebox july jumbo jump jungle junior jupiter juror justice juvenile kale kangaroo
karate kayak kazoo kebab keen keeper kennel kerosene ketchup kettle keyboard keyhole khaki kibble kick kilogram kilt kimono kindle kinetic king kiosk kitchen
kite kitten kiwi knapsack knife knob knuckle koala label labor labyrinth lacquer lacrosse ladder ladle lady lagoon lake lamb lance landmark language lantern
laptop large lark laser lasso laugh laundry lava lavender lawyer leaf league learn leather lecture legend legible leisure lemon length lens lentil leopard
lesson lettuce level liberty library license lichen licorice likewise lilac lily limerick limit limousine linen linoleum lion lipstick liquid literal lithium
little lizard llama loafer lobster location locker locust logic lollipop long lotion lottery lotus lounge lovable lubricate lucid lucky luggage lukewarm
lullaby luminous lunar lunchbox lustrous luxury lynx lyric macaw machine madrigal maestro magazine magenta magic magnet magpie mahogany mailbox maintain
majestic major maker malt mammal manage mandolin mango mansion mantle manual maple marathon marble march margin marina market marmot marry mars martial marvel
mascot mask massive matador matchbox material matinee matrix mattress maverick maximum maze meadow measure mechanic medallion mediate medley meeting mellow
melon membrane memory menagerie mentor menu mercury merge merit mermaid message metallic meteor method metro micro midnight mighty migrate mild milestone
mimic mimosa minaret mineral mingle minimum minnow minstrel mint minute miracle mirror mischief misty mobile moccasin mocha modern module moist molasses
molecule moment monarch monday money monitor monster month monument moonlight moose moral morning mosaic mosquito motor mound movement movie mower muffin
mulberry mulch multiply municipal muscle museum mushroom music mustard mutual muzzle mystery myth nacho name napkin narrow nation nature navigate navy nebula
neck nectar needle neighbor neon neptune nerve nestling newborn newspaper nickel nimble nitrogen noble nocturne noise nomad noodle normal northern nostalgia
notebook nougat nourish novel nozzle nucleus nugget nursery nutmeg nutrition nylon oasis oatmeal obelisk object oblong oboe observe obsidian obstacle occupy
ocean octave october offer office offset ointment okra olive olympic omega omelet onion online onlooker only onward opal open opera opinion opossum opponent
option orangutan orbit orchard order ordinary oregano organ orient origami ornate osprey ostrich ottoman outback outcome outdoor outer outfit outside overcoat
owner oxygen oyster ozone pace pacific package paddock pageant paint pajamas palace palette palm pamphlet pancake panda panel panorama pantry papaya paper
paprika parade parcel parent parsley partner passport pasta pathway patience pattern pavement pavilion payment peacock peak peanut pearl pebble pecan pedal
pedestal peel pelican pencil pendant penguin peninsula pension pentagon peony people pepper percent perfect period person petition petrol petunia pharaoh
pheasant photo phrase physics piano pickle picnic picture pier pigeon piggyback pigment pilgrim pillow pilot pinball pineapple pink pinwheel pioneer pipe
pirate piston pixel pizza placard planet plaster platinum plaza please pledge plenty plow pluck plug plumage plural plywood pocket podium poem poetry poker
polar pole polite polka pollen polygon pond popcorn popsicle popular porcupine porridge portrait possible postcard potato pouch poultry powder practice
prairie prank predict prefer premium prepare prestige pretty pride prism private problem produce profile program project promise proof propeller prosper
protein proud provide public pudding pulley pulse puma pumpkin pupil puppet purchase purple push pyramid python quadrant quail quality quantum quartz quasar
queen query quick quiet quince quiver quiz quota rabbit raccoon racket racquet radar radish raft ragtime railway rainbow raisin rally rampart rancher random
range rapid rare raspberry rattle raven razor react realm reason rebuild recall recess recipe record recruit rectangle recycle redwood reef reflect reform
refresh regal region rehearse reindeer rejoice relax relief remain remedy remind renew repair report reptile republic request rescue resolve respect return
reunion reveal review reward rhapsody rhino rhubarb ribbon rich rider ridge rigid rinse ripple ritual riverbank roadside roast robin rodeo roll romance
roommate rooster root rosebud rotate rotunda roundup routine rowboat royal rubber ruby rucksack rudder ruin ruler runner runway rural rustic sack saddle
safari safety saffron saga sagebrush sailor salad salon salsa salute salvage sample sandal sapling sapphire sardine satchel satellite satin saturn sauce
sausage savanna save sawdust saxophone scaffold scale scarf scene schedule school scientist scissors scooter score scout scramble screen script scroll scrub
scuba sculpture seafood seagull seaport search seat secret seek seesaw selection seller semester senate senior sense sentence sequoia serene series sermon
shadow shaft shallow shampoo shape shark shawl sheet shell shepherd sherbet shield shimmer shine shipyard shiver shock shoelace shopper shorthand shoulder
shovel showcase shredder shrimp shrug shuffle sibling sideways sierra silence silicon silk silver similar siren sister sitar size skate sketch skier skin
skirt skyline slalom sled sleeve sleigh slender slice slim slingshot slipper slither slogan slumber slush small smart smile smoke smolder smooth snail snake
snapshot snorkel snowflake snug soap soccer social soda software solid solo solstice solution sonata sonnet soothe soprano sorbet sort soul source southern
souvenir soybean spacious spade spaghetti spaniel sparkle spatula spearmint special spend sphere spike spinach spiral splash splendid split sponge spoon
spotlight spray spread spring sprout spruce spyglass square squeak squid stadium staff stage stair stallion stand stapler statue stay steady steel stencil
stereo stew stick still stirrup stitch stomach stone storage straight strength stride strong strudel stubble studio stump sturdy style subject suburb subway
success sudden suffix sugar suggest suit summary sunday sunflower sunset superb support supreme surf surgeon survey sushi suspend swagger swamp swan swarm
sweater swift swivel sycamore syllable symmetry sympathy synthesis syrup system tabby tablet tackle taco tadpole tailgate talent talisman tall tamale tangible
tapestry tapioca target tassel taste taxi teach team teapot teaspoon technique teddy teenager teeth telegram tempo tenant tender tennis tenor terrace textile
thankful theater theory thermal thick thimble thirsty thistle thought thread throne thunder thyme tiara ticket tide tiger tight timber tincture tinsel tiny
tiptoe titan title toad today toddler together toilet tollbooth tomato tomorrow tongue toothpick topaz topic topology tornado torrent tortoise total totem
toucan tourist townhouse tradition traffic trail tranquil trapeze travel treasure trek tremble trend triangle tribe trident trigger trilogy trinket trivia
trolley trombone trophy trout trowel true truffle trumpet trunk tubular tuesday tugboat tulip tumbler tuna tundra tunic turbine turkey turmeric turnip
turquoise turtle tutor tuxedo tweed twig twilight twist tycoon type typhoon ukulele ultimate umpire uncle under unfold unicorn unify unique unit universe
unknown unlock unravel unusual upbeat update upgrade uphill uplift upper upright upstairs urban urgent useful usher utensil utilize utopia vacant vacuum
vagabond valentine valve vanilla vapor variety varnish vase vault vector vegetable vehicle velocity velvet vendor veneer venture venue veranda verb verdict
vermilion verse vertical vessel veteran viaduct vibrant victory video view vigil village vinegar vintage vinyl violin virtue visa visit vital vivid vocal
vogue voice volcano volley voltage volume vortex voter voucher vowel voyage wafer waffle wage wagon walk wallaby walnut walrus waltz wander want warbler
wardrobe warehouse warning warranty washbowl wasp wayfarer wealth weave website wedding weekend weigh welcome west whale wharf wheat wheel when whirlpool
whisker widget width wigwam wildlife window winter wire wisdom wishbone wolf wolverine wombat woodland wool workshop world worm wrestle wrinkle xenon
xylophone yacht yard yearbook yesterday yodel yoga yogurt yolk young youth yoyo zeal zebra zenith zephyr zeppelin zigzag zinc zipper zircon zither zodiac
zoology zoom zucchini
`.trim().split(/\s+/);
